import CCurl
import Foundation

extension HTTPClientConfiguration {
    /// Reads the files that are named, because libcurl would only find out at the first handshake, and an encrypted
    /// key would make OpenSSL ask the terminal.
    func checkCredentialFiles() throws(HTTPClientError) {
        if let authorityFile {
            let pem = try Self.read(authorityFile)
            guard check(pem) == LOCKSTEP_CURL_PEM_GOOD else {
                throw HTTPClientError(.tls, detail: "no certificate in \(authorityFile)")
            }
        }
        switch (clientCertificateFile, clientKeyFile) {
        case (nil, nil): break
        case (let certificateFile?, let keyFile?):
            let certificate = try Self.read(certificateFile)
            let key = try Self.read(keyFile)
            switch check(certificate, key) {
            case LOCKSTEP_CURL_PEM_GOOD: break
            case LOCKSTEP_CURL_PEM_NO_CERTIFICATE:
                throw HTTPClientError(.tls, detail: "no certificate in \(certificateFile)")
            case LOCKSTEP_CURL_PEM_NO_KEY:
                throw HTTPClientError(.tls, detail: "no unencrypted private key in \(keyFile)")
            default:
                throw HTTPClientError(.tls, detail: "\(keyFile) is not the key of \(certificateFile)")
            }
        default:
            throw HTTPClientError(.tls, detail: "a client certificate and its key are given together or not at all")
        }
    }

    private static func read(_ path: String) throws(HTTPClientError) -> Data {
        do {
            return try Data(contentsOf: URL(fileURLWithPath: path))
        } catch {
            throw HTTPClientError(.tls, detail: "\(path) can't be read")
        }
    }

    private func check(_ pem: Data) -> lockstep_curl_pem {
        pem.withUnsafeBytes { bytes in
            lockstep_curl_pem(
                UInt32(lockstep_curl_check_certificates(bytes.baseAddress, Int32(clamping: bytes.count))))
        }
    }

    private func check(_ certificate: Data, _ key: Data) -> lockstep_curl_pem {
        certificate.withUnsafeBytes { certificate in
            key.withUnsafeBytes { key in
                lockstep_curl_pem(
                    UInt32(
                        lockstep_curl_check_pair(
                            certificate.baseAddress, Int32(clamping: certificate.count), key.baseAddress,
                            Int32(clamping: key.count))))
            }
        }
    }
}
