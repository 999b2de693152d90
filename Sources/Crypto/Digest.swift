import CCrypto
import Foundation

/// SHA-256, HMAC-SHA-256, comparison in constant time and random bytes, by OpenSSL.
public enum Crypto {
    /// The SHA-256 of the bytes: 32 bytes.
    public static func sha256(_ bytes: Data) -> Data {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        _ = bytes.withUnsafeBytes { SHA256($0.bindMemory(to: UInt8.self).baseAddress, $0.count, &digest) }
        return Data(digest)
    }

    /// HMAC-SHA-256 of the message: 32 bytes.
    ///
    /// OpenSSL failing (it has no SHA-256, or no memory) stops the program: a digest that wasn't computed must not be
    /// compared with one that somebody sent.
    public static func hmacSHA256(key: Data, message: Data) -> Data {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        var length: UInt32 = 0
        // OpenSSL takes a null key for "no key was given" and computes nothing; an empty key needs an address.
        let keyBytes = key.isEmpty ? [0] : [UInt8](key)
        let computed = message.withUnsafeBytes { message in
            HMAC(
                EVP_sha256(), keyBytes, Int32(key.count), message.bindMemory(to: UInt8.self).baseAddress,
                message.count, &digest, &length)
        }
        precondition(computed != nil && Int(length) == digest.count, "OpenSSL could not compute an HMAC")
        return Data(digest)
    }

    /// Whether the bytes are equal, in a time that depends on their length only.
    public static func constantTimeEqual(_ left: Data, _ right: Data) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0 }
        }
    }

    /// Random bytes for keys and tokens. OpenSSL's generator failing means that nothing secret can be made at all.
    public static func randomBytes(_ count: Int) -> Data {
        var bytes = [UInt8](repeating: 0, count: count)
        precondition(RAND_bytes(&bytes, Int32(count)) == 1, "the system has no randomness")
        return Data(bytes)
    }
}
