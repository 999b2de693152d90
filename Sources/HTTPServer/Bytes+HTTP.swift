extension UInt8 {
    /// `tchar` of RFC 9110, 5.6.2: what methods and field names are made of.
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Visible ASCII, blank, tab, or a byte above 0x7F: what field values are made of (RFC 9110, 5.5).
    var isFieldValueByte: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

    var isBlank: Bool { self == 0x20 || self == 0x09 }
}
