/// Every call of the API, by the name that faults and the record of calls use.
public enum SandboxRoute: String, CaseIterable, Sendable {
    case token
    case clientInit
    case createExecution, listExecutions, getExecution, executionHistory, executionActions
    case lookup, startPaymentSession, authorize, confirm, capture, cancel, refund
    case listInstruments, createInstrument, getInstrument, updateInstrument, deleteInstrument
    case listPayments, getPayment, listPaymentOperations
    case listHolders, createHolder
    // What the app's SDK calls, with the token from the init payload.
    case clientGetExecution, clientLookup, clientStartPaymentSession, clientAuthorize, clientConfirm
    case clientSaveInstrument, clientUpdateInstrument, clientDeleteInstrument, clientBinLookup, clientUpdate
    case redirectPage, waitPage

    /// How the caller shows who it is.
    enum Access { case nobody, apiKey, merchant, client }

    var access: Access {
        switch self {
        case .token: .apiKey
        case .redirectPage, .waitPage: .nobody
        case .clientGetExecution, .clientLookup, .clientStartPaymentSession, .clientAuthorize, .clientConfirm,
            .clientSaveInstrument, .clientUpdateInstrument, .clientDeleteInstrument, .clientBinLookup, .clientUpdate:
            .client
        default: .merchant
        }
    }

    /// Section 1.4: every POST, PATCH and soft DELETE of the API has a key.
    var needsKey: Bool {
        switch self {
        case .token, .listExecutions, .getExecution, .executionHistory, .executionActions, .listInstruments,
            .getInstrument, .listPayments, .getPayment, .listPaymentOperations, .listHolders, .clientGetExecution,
            .clientBinLookup, .clientUpdate, .redirectPage, .waitPage:
            false
        default: true
        }
    }
}

/// A route and what its path names.
struct RouteMatch: Sendable {
    enum Result { case found(RouteMatch), wrongMethod(allowed: [String]), unknown }

    let route: SandboxRoute
    let parameters: [String: String]

    private static let table: [(method: String, path: [Substring], route: SandboxRoute)] = {
        let execution = "/merchant/workflows/:code/executions/:id"
        let rows: [(String, String, SandboxRoute)] = [
            ("POST", "/auth/token/:clientId", .token),
            ("POST", "/merchant/client/init", .clientInit),
            ("POST", "/merchant/workflows/:code/executions", .createExecution),
            ("GET", "/merchant/workflows/:code/executions", .listExecutions),
            ("GET", execution, .getExecution),
            ("GET", execution + "/history", .executionHistory),
            ("GET", execution + "/actions", .executionActions),
            ("POST", execution + "/lookup", .lookup),
            ("POST", execution + "/startPaymentSession", .startPaymentSession),
            ("POST", execution + "/authorize", .authorize),
            ("POST", execution + "/confirm", .confirm),
            ("POST", execution + "/capture", .capture),
            ("POST", execution + "/cancel", .cancel),
            ("POST", execution + "/refund", .refund),
            ("GET", "/payment/instruments", .listInstruments),
            ("POST", "/payment/instruments", .createInstrument),
            ("GET", "/payment/instruments/:id", .getInstrument),
            ("PATCH", "/payment/instruments/:id", .updateInstrument),
            ("DELETE", "/payment/instruments/:id", .deleteInstrument),
            ("GET", "/payment/payments", .listPayments),
            ("GET", "/payment/payments/:id", .getPayment),
            ("GET", "/payment/payments/:id/operations", .listPaymentOperations),
            ("GET", "/merchant/holders", .listHolders),
            ("POST", "/merchant/holders", .createHolder),
            ("GET", "/public" + execution, .clientGetExecution),
            ("POST", "/public" + execution + "/lookup", .clientLookup),
            ("POST", "/public" + execution + "/startPaymentSession", .clientStartPaymentSession),
            ("POST", "/public" + execution + "/authorize", .clientAuthorize),
            ("POST", "/public" + execution + "/confirm", .clientConfirm),
            ("POST", "/public/payment/instruments", .clientSaveInstrument),
            ("PATCH", "/public/payment/instruments/:id", .clientUpdateInstrument),
            ("DELETE", "/public/payment/instruments/:id", .clientDeleteInstrument),
            ("POST", "/public/payment/binLookup", .clientBinLookup),
            ("POST", "/public/merchant/client/update", .clientUpdate),
            ("GET", "/public/redirect/:id", .redirectPage),
            ("GET", "/public/redirect/wait/:id", .waitPage),
        ]
        return rows.map { ($0.0, $0.1.split(separator: "/"), $0.2) }
    }()

    static func find(method: String, path: String) -> Result {
        let segments = path.split(separator: "/")
        var allowed: [String] = []
        for row in table {
            guard let parameters = match(row.path, segments) else { continue }
            if row.method == method { return .found(RouteMatch(route: row.route, parameters: parameters)) }
            allowed.append(row.method)
        }
        return allowed.isEmpty ? .unknown : .wrongMethod(allowed: allowed)
    }

    private static func match(_ pattern: [Substring], _ segments: [Substring]) -> [String: String]? {
        guard pattern.count == segments.count else { return nil }
        var parameters: [String: String] = [:]
        for (expected, found) in zip(pattern, segments) {
            if expected.first == ":" {
                parameters[String(expected.dropFirst())] = found.removingPercentEncoding ?? String(found)
            } else if expected != found {
                return nil
            }
        }
        return parameters
    }
}
