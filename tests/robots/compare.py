"""Mass and centre of mass of public robots, as read here and by Pinocchio; run by hand.

    pip install pin example-robot-data
    python tests/robots/compare.py target/release/least-action [FILE.urdf ...]

Without files it takes all that `example-robot-data` brings. Bases fly; joints are at zero, or at the limit nearest to it.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pinocchio as pin

WITHIN = 1e-9  # kg, m


def robots():
    for folder in sys.path:
        shared = os.path.join(folder, "cmeel.prefix", "share", "example-robot-data", "robots")
        for at, _, files in os.walk(shared):
            yield from (os.path.join(at, f) for f in sorted(files) if f.endswith(".urdf"))


def ours(program, file, base):
    with tempfile.TemporaryDirectory() as folder:
        problem = os.path.join(folder, "p.toml")
        with open(problem, "w") as f:
            f.write(f'time_step = 0.01\nhorizon = 0.01\nmechanism = "{file}"\n[import]\nbase = "{base}"\ncontrols = "none"\n')
        done = subprocess.run([program, "describe", problem, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join(json.loads(done.stdout)["message"].split()))
    return json.loads(done.stdout)


def theirs(file, base, joints):
    model = pin.buildModelFromUrdf(file, pin.JointModelFreeFlyer()) if base == "free" else pin.buildModelFromUrdf(file)
    q = pin.neutral(model)
    for joint in joints:
        if model.existJointName(joint["name"]) and len(joint["coordinates"]) == 1:
            j = model.joints[model.getJointId(joint["name"])]
            value = joint["start"][0]
            if j.nq == 1:
                q[j.idx_q] = value
            elif j.nq == 2:  # without limits: cosine and sine
                q[j.idx_q : j.idx_q + 2] = np.cos(value), np.sin(value)
    data = model.createData()
    center = pin.centerOfMass(model, data, q)
    return pin.computeTotalMass(model), center


def main():
    program, files = sys.argv[1], sys.argv[2:] or list(robots())
    wrong = 0
    for file in files:
        name = os.path.basename(file)
        for base in ["free", "fixed"]:
            try:
                own = ours(program, file, base)
            except RuntimeError as e:
                wrong += 1
                print(f"{name:36} {base:6} NOT READ: {e}")
                continue
            mass, center = theirs(file, base, own["joints"])
            off = max(abs(own["mass"] - mass), np.abs(np.array(own["center_of_mass"]) - center).max())
            said = "" if off < WITHIN else "  DIFFERS"
            wrong += off >= WITHIN
            print(f"{name:36} {base:6} {mass:10.5f} kg  {len(own['bodies']):3} bodies  {off:8.1e}{said}")
    print(f"{len(files)} files, {wrong} of {2 * len(files)} readings wrong")
    sys.exit(wrong > 0)


main()
