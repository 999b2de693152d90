import Foundation
import Testing

@testable import Basics

@Suite("A secret shows itself to nobody (P1, P2)")
struct SecretTests {
    struct Holder {
        let name = "holder"
        let token = Secret("canary-4242")
        let maybe: Secret<String>? = Secret("canary-4242")
        let list = [Secret("canary-4242")]
        let map = ["k": Secret("canary-4242")]
    }

    enum Failure: Error { case refused(Secret<String>) }

    @Test("whatever prints it prints dots (P2)")
    func printing() {
        let secret = Secret("canary-4242")
        let holder = Holder()
        let optional: Secret<String>? = secret
        let nested: Secret<Secret<String>> = Secret(secret)
        let anything: Any = secret
        var outputs = [
            "\(secret)", secret.description, secret.debugDescription, String(describing: secret),
            String(reflecting: secret), "\(String(describing: optional))", String(reflecting: optional),
            "\([secret])", String(reflecting: [secret]), "\(["a": secret])", String(reflecting: Set([secret])),
            "\(holder)", String(reflecting: holder), String(describing: holder), "\((secret, 1))", "\(nested)",
            "\(anything)", "\(Failure.refused(secret))", String(reflecting: Failure.refused(secret)),
            Failure.refused(secret).localizedDescription, "\(Result<Secret<String>, Failure>.success(secret))",
            String(describing: Mirror(reflecting: secret)),
            String(describing: Mirror(reflecting: secret).children.map(\.value)),
            String(format: "%@", "\(secret)"),
        ]
        for value: Any in [secret, holder, optional as Any, [secret], ["k": secret], nested, Failure.refused(secret)] {
            var dumped = ""
            dump(value, to: &dumped)
            outputs.append(dumped)
            var printed = ""
            print(value, to: &printed)
            debugPrint(value, to: &printed)
            outputs.append(printed)
        }
        for output in outputs { #expect(!output.contains("4242")) }
        #expect("\(secret)" == "•••" && String(reflecting: secret) == "•••")
        #expect(outputs.filter { $0.contains("•••") }.count > 20)
    }

    @Test("no mirror leads to the value")
    func mirrors() {
        let mirror = Mirror(reflecting: Secret("canary-4242"))
        #expect(mirror.children.isEmpty)
        #expect(mirror.descendant("reveal") == nil && mirror.descendant(0) == nil)
    }

    @Test("the value is reached by its name, and compares by its value")
    func reveal() {
        #expect(Secret("a").reveal == "a")
        #expect(Secret("a") == Secret("a") && Secret("a") != Secret("b"))
        #expect(Set([Secret("a"), Secret("a")]).count == 1)
        #expect(Secret(Data([1])).reveal == Data([1]))
    }
}
