import Basics
import Foundation

extension Settings {
    /// Payrails: how to reach it, and a setting for every guess about it (section 12 of the reference).
    public struct Payrails: Sendable {
        public enum CaptureMode: String, Sendable, CaseIterable { case workflow, instant, manual, delayed }

        public let baseURL: ServiceURL
        public let clientID: String
        public let clientSecret: Secret<String>
        public let workspaceID: String?
        /// PEM files; both or none.
        public let clientCertificateFile: String?
        public let clientKeyFile: String?
        public let authorityFile: String?
        public let allowsPlainHTTP: Bool
        /// Nil: every notification is 404.
        public let webhookKeys: WebhookKeyList?

        public let workflowCode: String
        public let workflowVersion: Int?
        public let lookupPath: String
        public let captureMode: CaptureMode
        public let sendsCaptureModeOnInit: Bool
        public let sendsOrderProcessingType: Bool
        public let sendsCIT: Bool
        public let skipsThreeDSForCharges: Bool

        public let connectTimeout: Duration
        public let tokenTimeout: Duration
        public let callTimeout: Duration
        public let readTimeout: Duration
        public let waitTimeout: Duration
        public let tokenRefreshMargin: Duration
        public let requestsPerSecond: Int
        public let sharedRequestsPerSecond: Int
        public let requestBurst: Int
        public let rateLimitPause: Duration
        public let pageSize: Int
        public let idempotencyRetention: Duration

        /// What one step of a worker can take at most: a token and a call, and both again after a 401.
        public var longestStep: Duration { (tokenTimeout + callTimeout) * 2 }

        /// Nil where it isn't needed and not set up.
        init?(_ read: SettingsReader, isNeeded: Bool, allowsPlainHTTP: Bool) {
            read.begin("Payrails")
            self.allowsPlainHTTP = allowsPlainHTTP
            let url = read.required(
                "PAYRAILS_BASE_URL", .url, isNeeded: isNeeded,
                "https://api.staging.payrails.io for trying, https://api.payrails.io for real, or the host that the portal shows."
            )
            let id = read.required(
                "PAYRAILS_CLIENT_ID",
                .matching("letters, digits, dots, dashes and underscores", SettingText.isPlainWord),
                isNeeded: isNeeded, "From the portal, under API credentials.")
            let secret = read.required(
                "PAYRAILS_CLIENT_SECRET", .secret("the secret that the portal showed once"), isNeeded: isNeeded,
                secret: true, "From the portal. It often holds $ and !, so no shell may read it: give it as a file.")
            workspaceID = read.optional(
                "PAYRAILS_WORKSPACE_ID", .matching("a UUID or a word", SettingText.isPlainWord),
                "Needed with credentials of one workspace; without it they get 401.")
            clientCertificateFile = read.file(
                "PAYRAILS_CLIENT_CERT",
                "The certificate for mTLS, with its chain, in PEM. Read again when it is renewed.")
            clientKeyFile = read.file(
                "PAYRAILS_CLIENT_KEY", "The key of PAYRAILS_CLIENT_CERT, in PEM, without a password.")
            authorityFile = read.file("PAYRAILS_CA", "Authorities to trust instead of the system's, in PEM.")
            webhookKeys = read.optional(
                "PAYRAILS_WEBHOOK_KEYS", .webhookKeys, secret: true,
                "The keys that notifications are signed with, by endpoint. While a key rotates, give the old and the new one."
            )

            read.begin("Payrails: what the documents leave open")
            workflowCode = read.usually(
                "payment-acceptance", "PAYRAILS_WORKFLOW_CODE",
                .matching("a code like payment-acceptance") { $0.wholeMatch(of: /[a-z][-A-Za-z0-9]*/) != nil },
                "The workflow of checkouts that name none, and of charges.")
            workflowVersion = read.optional(
                "PAYRAILS_WORKFLOW_VERSION", .integer(1...1_000_000), "Pins a version of the workflow.")
            lookupPath = read.usually(
                "/merchant/workflows/{workflowCode}/executions/{executionId}/lookup", "PAYRAILS_LOOKUP_PATH",
                .matching("a path with {workflowCode} and {executionId}") {
                    $0.hasPrefix("/") && $0.contains("{workflowCode}") && $0.contains("{executionId}")
                }, "Where the amount of an execution is moved.")
            captureMode = read.usually(
                "workflow", "PAYRAILS_CAPTURE_MODE", .word,
                "When authorized amounts are captured; workflow: as Payrails is set up.")
            sendsCaptureModeOnInit = read.usually(
                "0", "PAYRAILS_CAPTURE_MODE_ON_INIT", .flag,
                "1 sends the capture mode with checkouts too, not only with charges.")
            sendsOrderProcessingType = read.usually(
                "0", "PAYRAILS_SEND_PROCESSING_TYPE", .flag, "1 also sends meta.order.processingType with charges.")
            sendsCIT = read.usually(
                "0", "PAYRAILS_SEND_CIT", .flag, "1 sends meta.CIT: true with a customer, false without one.")
            skipsThreeDSForCharges = read.usually(
                "1", "PAYRAILS_SKIP_THREE_DS", .flag, "1 asks for no challenge on charges, as no customer is there.")
            connectTimeout = read.usually(
                "3000", "PAYRAILS_CONNECT_TIMEOUT_MS", .milliseconds(100...30_000), "To connect, TLS included.")
            tokenTimeout = read.usually(
                "3000", "PAYRAILS_TOKEN_TIMEOUT_MS", .milliseconds(100...60_000), "To get an access token.")
            callTimeout = read.usually(
                "10000", "PAYRAILS_CALL_TIMEOUT_MS", .milliseconds(500...120_000),
                "To get the answer of a call that changes something; after it the outcome is unknown and looked up.")
            readTimeout = read.usually(
                "10000", "PAYRAILS_READ_TIMEOUT_MS", .milliseconds(500...120_000),
                "To get the answer of a call that only reads.")
            waitTimeout = read.usually(
                "30000", "PAYRAILS_WAIT_TIMEOUT_MS", .milliseconds(1000...120_000), "For a read that waits for news.")
            tokenRefreshMargin = read.usually(
                "60", "PAYRAILS_TOKEN_MARGIN_SECONDS", .seconds(0...3000),
                "How long before its end a token is replaced.")
            requestsPerSecond = read.usually(
                "25", "PAYRAILS_REQUESTS_PER_SECOND", .integer(0...10_000),
                "Calls a second of one process; 0: no limit."
            )
            sharedRequestsPerSecond = read.usually(
                "0", "PAYRAILS_SHARED_REQUESTS_PER_SECOND", .integer(0...10_000),
                "Calls a second of all processes on one database together; 0: each has only its own limit.")
            requestBurst = read.usually(
                "50", "PAYRAILS_REQUEST_BURST", .integer(1...10_000), "Calls that may go at once after a quiet time.")
            rateLimitPause = read.usually(
                "1000", "PAYRAILS_RATE_LIMIT_PAUSE_MS", .milliseconds(10...60_000),
                "The pause after a 429 that names none.")
            pageSize = read.usually(
                "100", "PAYRAILS_PAGE_SIZE", .integer(1...1000), "Items of a page that is read there.")
            idempotencyRetention = read.usually(
                "24h", "PAYRAILS_IDEMPOTENCY_RETENTION", .duration,
                "How long Payrails is taken to keep an idempotency key. After it, nothing is sent again under the key.")

            if (clientCertificateFile == nil) != (clientKeyFile == nil) {
                read.fault("PAYRAILS_CLIENT_CERT", "goes together with PAYRAILS_CLIENT_KEY; set both or neither")
            }
            PlainHTTP.check(url, "PAYRAILS_BASE_URL", allowed: allowsPlainHTTP, read)
            guard let url, let id, let secret else { return nil }
            if url.host == "api.payrails.io", clientCertificateFile == nil {
                read.fault("PAYRAILS_CLIENT_CERT", "must be set: Payrails' production wants mTLS")
            }
            baseURL = url
            clientID = id
            clientSecret = secret
        }
    }
}

extension SettingsReader {
    /// Needed by some commands only; nil where it isn't there.
    fileprivate func required<Value>(
        _ name: String, _ type: SettingForm<Value>, isNeeded: Bool, secret: Bool = false, _ help: String
    ) -> Value? {
        // The table says "required" in any case: it is, for the service.
        let value = optional(name, type, secret: secret, help)
        markRequired(name)
        if value == nil, isNeeded, !isSet(name) { fault(name, "must be set: \(type.form)") }
        return value
    }

    /// A file in PEM: named by the setting, or by its `_FILE`, whose content would be the same file.
    fileprivate func file(_ name: String, _ help: String) -> String? {
        if let path = filePath(of: name),
            (try? readFile(path)).map({ $0.starts(with: Data("-----BEGIN".utf8)) }) == true
        {
            note(name, form: SettingForm<String>.path.form, help)
            if !(environment[name] ?? "").isEmpty { fault(name, "is given twice; set either \(name) or \(name)_FILE") }
            return path
        }
        return optional(name, .path, help)
    }
}

extension SettingText {
    static func isPlainWord(_ text: String) -> Bool {
        text.utf8.count <= 200
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || [UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ".")].contains(byte)
            }
    }
}
