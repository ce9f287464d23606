//! As much of JSON as an adapter needs, so that it builds without crates; serde_json does the same if you have it already.

use std::collections::HashMap;

/// Gives bytes as a JSON string, or where they are not UTF-8 as the object of their hex digits.
pub fn text(raw: impl AsRef<[u8]>) -> String {
    let Ok(text) = std::str::from_utf8(raw.as_ref()) else {
        let digits: String = raw.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        return format!("{{\"hex\":\"{digits}\"}}");
    };
    let mut quoted = String::from('"');
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '\0'..='\x1f' => quoted += &format!("\\u{:04x}", sign as u32),
            _ => quoted.push(sign),
        }
    }
    quoted + "\""
}

/// Gives an object of these fields, whose values are JSON already.
pub fn object(fields: &[(&str, &str)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Gives the fields of the object in a line: of strings their text, of all else what stands there. None where it is no object.
pub fn fields(line: &[u8]) -> Option<HashMap<String, String>> {
    let mut parser = Parser { line, at: 0 };
    let mut fields = HashMap::new();
    (parser.next()? == b'{').then_some(())?;
    while parser.peek()? != b'}' {
        let name = parser.value()?;
        (parser.next()? == b':').then_some(())?;
        fields.insert(name, parser.value()?);
        if parser.peek()? == b',' {
            parser.at += 1;
        }
    }
    Some(fields)
}

struct Parser<'a> {
    line: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while self.line.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.line.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn value(&mut self) -> Option<String> {
        let (first, start) = (self.peek()?, self.at);
        if first == b'"' {
            return self.string();
        }
        let mut depth = 0;
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                b'[' | b'{' => (depth, self.at) = (depth + 1, self.at + 1),
                b',' | b']' | b'}' if depth == 0 => break,
                b']' | b'}' => (depth, self.at) = (depth - 1, self.at + 1),
                _ => self.at += 1,
            }
        }
        String::from_utf8(self.line[start..self.at].to_vec()).ok()
    }

    fn string(&mut self) -> Option<String> {
        let mut units: Vec<u16> = Vec::new(); // UTF-16, as the escapes are
        let rest = std::str::from_utf8(&self.line[self.at + 1..]).ok()?;
        let mut signs = rest.char_indices();
        while let Some((place, sign)) = signs.next() {
            let unit = match sign {
                '"' => {
                    self.at += place + 2;
                    return String::from_utf16(&units).ok();
                }
                '\\' => match signs.next()?.1 {
                    'u' => {
                        let digits: String = (0..4).filter_map(|_| signs.next()).map(|(_, digit)| digit).collect();
                        units.push(u16::from_str_radix(&digits, 16).ok()?);
                        continue;
                    }
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\x08',
                    'f' => '\x0c',
                    other => other,
                },
                other => other,
            };
            units.extend_from_slice(unit.encode_utf16(&mut [0; 2]));
        }
        None
    }
}
