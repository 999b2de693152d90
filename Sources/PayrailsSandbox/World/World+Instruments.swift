import Basics
import Lockstep

extension World {
    mutating func addInstrument(
        holderReference: String, method: String, card: CollectedCard?, status: String, futureUsage: String? = nil,
        hasNetworkToken: Bool = false, email: String? = nil
    ) -> Instrument {
        let holder = holder(reference: holderReference)
        let created = stamp()
        let instrument = Instrument(
            id: random.uuid(), sequence: nextSequence(), holderID: holder.id, holderReference: holder.reference,
            createdAt: created, updatedAt: created, paymentMethod: method, status: status, isDefault: false,
            futureUsage: futureUsage, network: card.map { _ in "visa" }, bin: card.map { _ in "42424242" },
            suffix: card?.suffix, expiryMonth: card?.expiryMonth, expiryYear: card?.expiryYear,
            email: email, networkTokenID: hasNetworkToken ? random.uuid() : nil, fingerprint: random.opaque())
        instruments[instrument.id] = instrument
        instrumentsByHolder[holder.reference, default: []].append(instrument.id)
        return instrument
    }

    func instrument(_ id: String) throws(APIError) -> Instrument {
        guard let instrument = instruments[id.lowercased()], instrument.status != "deleted" else {
            throw .notFound("no such instrument")
        }
        return instrument
    }

    /// Section 6.3: `POST /payment/instruments`.
    mutating func createInstrument(_ body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.createInstrument)
        let data = body["data"]
        let reference: String
        if let given = body["holderReference"]?.string {
            reference = given
        } else if let id = body["holderId"]?.string {
            guard let known = holders.values.first(where: { $0.id == id }) else { throw .notFound("no such holder") }
            reference = known.reference
        } else {
            throw APIError(faults: [.init(detail: "holderId or holderReference is required", isMissing: true)])
        }
        var card: CollectedCard?
        if body["paymentMethod"]?.string == "card" {
            card = data?["encryptedData"]?.string.flatMap(CollectedCard.init)
            if let suffix = data?["suffix"]?.string {
                card = CollectedCard(
                    suffix: suffix, expiryMonth: data?["expiryMonth"]?.string ?? "12",
                    expiryYear: data?["expiryYear"]?.string ?? "2034")
            }
            guard card != nil else { throw .invalid("data must hold a card") }
        }
        var instrument = addInstrument(
            holderReference: reference, method: body["paymentMethod"]?.string ?? "card", card: card,
            status: "enabled", futureUsage: body["futureUsage"]?.string,
            hasNetworkToken: body["provisionNetworkToken"]?.bool ?? false, email: data?["email"]?.string)
        instrument.merchantReference = body["merchantReference"]?.string
        instrument.networkTransactionReference = body["networkTransactionReference"]?.string
        instrument.holderName = data?["holderName"]?.string
        instruments[instrument.id] = instrument
        if body["default"]?.bool == true { makeDefault(instrument.id) }
        return Answer(201, json(of: try self.instrument(instrument.id)))
    }

    /// Section 6.3: expiry can't be patched.
    mutating func updateInstrument(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.updateInstrument)
        var instrument = try instrument(id)
        if let status = body["status"]?.string { instrument.status = status }
        if let reference = body["networkTransactionReference"]?.string {
            instrument.networkTransactionReference = reference
        }
        if let reference = body["merchantReference"]?.string { instrument.merchantReference = reference }
        if let method = body["paymentMethod"]?.string { instrument.paymentMethod = method }
        if body["default"]?.bool == false { instrument.isDefault = false }
        instrument.updatedAt = stamp()
        instruments[instrument.id] = instrument
        if body["default"]?.bool == true { makeDefault(instrument.id) }
        return Answer(200, json(of: try self.instrument(id)))
    }

    mutating func deleteInstrument(_ id: String) throws(APIError) -> Answer {
        var instrument = try instrument(id)
        instrument.status = "deleted"
        instrument.isDefault = false
        instrument.updatedAt = stamp()
        instruments[instrument.id] = instrument
        return Answer(200, ["success": true])
    }

    /// A holder has one default at most.
    private mutating func makeDefault(_ id: String) {
        guard let holder = instruments[id]?.holderReference else { return }
        for other in instrumentsByHolder[holder] ?? [] { instruments[other]?.isDefault = other == id }
    }

    /// What lookup offers for this holder (section 3.2): created and enabled instruments, whatever their expiry.
    func paymentOptions(holderReference: String, allowed: [String]?) -> [JSON] {
        let saved = (instrumentsByHolder[holderReference] ?? []).compactMap { instruments[$0] }
            .filter { ["created", "enabled"].contains($0.status) }
        func offered(_ method: String) -> JSON {
            .array(saved.filter { $0.paymentMethod == method }.map { json(of: $0) })
        }
        let options: [JSON] = [
            [
                "integrationType": "api", "paymentMethodCode": "card", "description": "Card",
                "clientConfig": ["displayName": "Card", "flow": "inline", "supportsSaveInstrument": true],
                "paymentInstruments": offered("card"),
            ],
            [
                "integrationType": "api", "paymentMethodCode": "applePay",
                "config": [
                    "type": "CARD",
                    "parameters": [
                        "countryCode": "DE", "merchantCapabilities": ["supports3DS"],
                        "merchantIdentifier": "merchant.example", "supportedNetworks": ["VISA", "MASTERCARD"],
                    ],
                ],
            ],
            [
                "integrationType": "hpp", "paymentMethodCode": "payPal",
                "config": ["clientId": "pp-client", "merchantId": "pp-merchant"],
                "clientConfig": ["flow": "redirect"], "paymentInstruments": offered("payPal"),
            ],
        ]
        guard let allowed else { return options }
        return options.filter { $0["paymentMethodCode"]?.string.map(allowed.contains) ?? false }
    }
}
