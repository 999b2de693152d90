import Basics
import Foundation
import Lockstep
import Store

extension Assembly {
    /// Every call that this process answers.
    var routes: [Route] { (parts.hasAPI ? apiRoutes : []) + operationalRoutes }

    private var apiRoutes: [Route] {
        let api = API(
            orchestrator: orchestrator,
            options: API.Options(
                workflowCode: payrails.workflowCode,
                references: PaymentReference(separator: settings.rules.referenceSeparator),
                staleAfter: settings.rules.staleAfter), clock: clock, bells: bells)
        let intake = NotificationIntake(
            inbox: inbox, keys: webhookKeys, metrics: notificationMetrics, clock: clock)
        let gatekeeper = gatekeeper
        return [
            Endpoint.createCheckout.handled(by: api.createCheckout).refreshingReplays(api.renewClientToken),
            Endpoint.getCheckout.handled(by: api.readCheckout),
            Endpoint.listCheckouts.handled(by: api.listCheckouts),
            Endpoint.openSession.handled(by: api.renewSession),
            Endpoint.changeAmount.handled(by: api.updateAmount),
            Endpoint.updateExecution.handled(by: api.updateExecution),
            Endpoint.cancelCheckout.handled(by: api.cancelCheckout),
            Endpoint.prePayment.handled(by: gatekeeper.answer).authenticated(by: authenticator.asking(gatekeeper.store))
                .answeringAnyway(within: gatekeeper.timing.answer, gatekeeper.refuse),
            Endpoint.createTokenization.handled(by: api.createTokenization),
            Endpoint.saveInstrument.handled(by: api.saveInstrument),
            Endpoint.listInstruments.handled(by: api.listInstruments),
            Endpoint.changeInstrument.handled(by: api.changeInstrument),
            Endpoint.deleteInstrument.handled(by: api.deleteInstrument),
            Endpoint.createCharge.handled(by: api.createCharge),
            Endpoint.getCharge.handled(by: api.readCharge),
            Endpoint.createSubscription.handled(by: api.createSubscription),
            Endpoint.getSubscription.handled(by: api.readSubscription),
            Endpoint.listSubscriptions.handled(by: api.listSubscriptions),
            Endpoint.changeSubscription.handled(by: api.changeSubscription),
            Endpoint.pauseSubscription.handled(by: api.pauseSubscription),
            Endpoint.resumeSubscription.handled(by: api.resumeSubscription),
            Endpoint.cancelSubscription.handled(by: api.cancelSubscription),
            Endpoint.listSubscriptionCharges.handled(by: api.listSubscriptionCharges),
            Endpoint.getExecution.handled(by: api.readExecution),
            Endpoint.capture.handled(by: api.capture),
            Endpoint.cancel.handled(by: api.cancelExecution),
            Endpoint.refund.handled(by: api.refund),
            Endpoint.getOperation.handled(by: api.readOperation),
            Endpoint.readEvents.handled(by: api.readEvents),
            Endpoint.listDiscrepancies.handled(by: api.listDiscrepancies),
            Endpoint.resolveDiscrepancy.handled(by: api.resolveDiscrepancy),
            Endpoint.receiveNotification.handled(by: intake.receive),
            Endpoint.receiveNotificationAtEndpoint.handled(by: intake.receive),
        ]
    }

    private var operationalRoutes: [Route] {
        let metrics = metrics
        let readiness = Readiness(pool: pool, bells: bells)
        let routed = (parts.hasAPI ? apiRoutes.map(\.endpoint) : []) + Self.operationalEndpoints
        let document = OpenAPIDocument.make(
            routed, version: LockstepVersion.current, server: settings.http.publicURL?.text)
        return [
            restricted(.health, .healthz) { _ in .ok(["status": "ok"]) },
            restricted(.readiness, .readyz) { _ in try await readiness.answer() },
            restricted(.metrics, .metrics) { _ in .text(metrics.text, contentType: Metrics.contentType) },
            restricted(.openAPI, .openapi) { _ in .ok(document) },
        ]
    }

    private static let operationalEndpoints: [Endpoint] = [.health, .readiness, .metrics, .openAPI]

    private func restricted(
        _ endpoint: Endpoint, _ path: Settings.HTTP.RestrictedPath, _ handler: @escaping Route.Handler
    ) -> Route {
        let isRestricted = settings.http.restrictedPaths.contains(path)
        return (isRestricted ? endpoint.restricted(to: .scope(.ops)) : endpoint).handled(by: handler)
    }
}

/// The version that the OpenAPI document and `lockstep --help` show.
public enum LockstepVersion {
    public static let current = "0.1.0"
}
