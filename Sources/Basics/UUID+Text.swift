import Foundation

extension UUID {
    /// Reads the usual form, 8-4-4-4-12 hexadecimal digits of either case, and nothing else. (Foundation's
    /// `init?(uuidString:)` reads a digit that isn't one as 0, so that two texts would mean one id.)
    public init?(canonical text: some StringProtocol) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        var high: UInt8?
        var position = 0
        for character in text.utf8 {
            defer { position += 1 }
            if [8, 13, 18, 23].contains(position) {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch character {
            case 0x30...0x39: digit = character - 0x30
            case 0x41...0x46, 0x61...0x66: digit = (character | 0x20) - 0x61 + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        guard position == 36 else { return nil }
        self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// Lower case, as the contract and Payrails write ids.
    public var lowercased: String { uuidString.lowercased() }
}
