import Foundation

extension UUID {
    /// A UUID of version 7 (RFC 9562): 48 bits of milliseconds, then 74 random bits.
    public static func version7(
        at time: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> UUID {
        let milliseconds = UInt64(bitPattern: time.seconds * 1000 + Int64(time.nanoseconds) / 1_000_000)
        let high = generator.next() as UInt64
        let low = generator.next() as UInt64
        func byte(_ value: UInt64, _ shift: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) }
        return UUID(
            uuid: (
                byte(milliseconds, 40), byte(milliseconds, 32), byte(milliseconds, 24), byte(milliseconds, 16),
                byte(milliseconds, 8), byte(milliseconds, 0),
                0x70 | byte(high, 0) & 0x0F, byte(high, 8), 0x80 | byte(high, 16) & 0x3F, byte(high, 24),
                byte(low, 0), byte(low, 8), byte(low, 16), byte(low, 24), byte(low, 32), byte(low, 40)
            ))
    }
}
