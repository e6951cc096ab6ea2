//! Values that may be written in several forms.

/// Implements `Deserialize` by the form of the value. Unlike serde's untagged enums this keeps the place of an error
/// within the value.
macro_rules! forms {
    ($type:ident, $expecting:literal $(, number $number:ident)? $(, list $list:ident)? $(, text $text:ident)?
        $(, table $table:ident)?
        $(, switch $switch:ident)?) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Forms;
                impl<'de> serde::de::Visitor<'de> for Forms {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($expecting)
                    }
                    $(
                        fn visit_f64<E>(self, v: f64) -> Result<$type, E> {
                            Ok($type::$number(v))
                        }

                        fn visit_i64<E>(self, v: i64) -> Result<$type, E> {
                            Ok($type::$number(v as f64))
                        }

                        fn visit_u64<E>(self, v: u64) -> Result<$type, E> {
                            Ok($type::$number(v as f64))
                        }
                    )?
                    $(
                        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut a: A) -> Result<$type, A::Error> {
                            let d = serde::de::value::SeqAccessDeserializer::new(&mut a);
                            let list = Deserialize::deserialize(d).map($type::$list)?;
                            let mut more = 0;
                            while a.next_element::<serde::de::IgnoredAny>()?.is_some() {
                                more += 1;
                            }
                            match more {
                                0 => Ok(list),
                                _ => Err(serde::de::Error::custom(format!("a list that is {more} too long, expected {}", $expecting))),
                            }
                        }
                    )?
                    $(
                        fn visit_str<E>(self, v: &str) -> Result<$type, E> {
                            Ok($type::$text(v.to_owned()))
                        }
                    )?
                    $(
                        fn visit_bool<E>(self, v: bool) -> Result<$type, E> {
                            Ok($type::$switch(v))
                        }
                    )?
                    $(
                        fn visit_map<A: serde::de::MapAccess<'de>>(self, a: A) -> Result<$type, A::Error> {
                            Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(a)).map($type::$table)
                        }
                    )?
                }
                d.deserialize_any(Forms)
            }
        }
    };
}

pub(super) use forms;
