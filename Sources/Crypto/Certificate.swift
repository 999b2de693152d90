import CCrypto
import Foundation

/// When a certificate is valid, read by OpenSSL from PEM.
public struct CertificateValidity: Sendable, Equatable {
    /// Seconds since 1970.
    public let notBeforeSeconds: Int64
    /// Seconds since 1970; the last second of its life.
    public let notAfterSeconds: Int64

    /// The first certificate of a PEM text; nil where there is none that can be read.
    public init?(pem: Data) {
        let certificate = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
            defer { BIO_free(bio) }
            return PEM_read_bio_X509(bio, nil, nil, nil)
        }
        guard let certificate else { return nil }
        defer { X509_free(certificate) }
        guard let from = Self.seconds(X509_get0_notBefore(certificate)),
            let until = Self.seconds(X509_get0_notAfter(certificate))
        else { return nil }
        notBeforeSeconds = from
        notAfterSeconds = until
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }
}
