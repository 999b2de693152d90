import Basics
import Crypto
import Foundation

extension Doctor {
    /// The client's certificate for mTLS (section 1.2): whether it can be read, and how long it lasts.
    func certificate(_ payrails: Settings.Payrails) -> Finding {
        let subject = "client certificate"
        guard let file = payrails.clientCertificateFile else {
            return Finding(
                subject, .note, "none; Payrails' production wants mTLS",
                mend: "set PAYRAILS_CLIENT_CERT and PAYRAILS_CLIENT_KEY")
        }
        guard let pem = try? Data(contentsOf: URL(fileURLWithPath: file)), let validity = CertificateValidity(pem: pem)
        else {
            return Finding(
                subject, .wrong, "can't be read as PEM",
                mend: "check the file of PAYRAILS_CLIENT_CERT, and who may read it")
        }
        let now = clock.now().seconds
        let from = Timestamp(seconds: validity.notBeforeSeconds).rfc3339
        let until = Timestamp(seconds: validity.notAfterSeconds).rfc3339
        if now < validity.notBeforeSeconds {
            return Finding(
                subject, .wrong, "isn't valid before \(from)",
                mend: "check this machine's clock; else use the one before it until then")
        }
        if now > validity.notAfterSeconds {
            return Finding(
                subject, .wrong, "expired on \(until)", mend: "make a new one in the portal under mTLS certificates")
        }
        let days = (validity.notAfterSeconds - now) / 86_400
        // A month is what a change of certificates takes where several people must agree to it.
        guard days < 30 else { return Finding(subject, .fine, "valid until \(until)") }
        let rest = days == 1 ? "1 day" : "\(days) days"
        return Finding(
            subject, .wrong, "expires in \(rest), on \(until)",
            mend: "make a new one in the portal, put it in place, then revoke the old one")
    }
}
