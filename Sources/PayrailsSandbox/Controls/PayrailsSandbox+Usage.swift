/// How to use the stand-in, for people.
extension PayrailsSandbox {
    /// What there is under `/sandbox/`.
    public static func usage(baseURL: String) -> String {
        """
        Pay the execution that an init payload or a checkout names, as the app's SDK would:
          curl -X POST \(baseURL)/sandbox/executions/EXECUTION/pay -d '{"card":"4242"}'
          curl -X POST \(baseURL)/sandbox/executions/EXECUTION/pay -d '{"card":"3220"}'   # asks for 3-D Secure
          curl -X POST \(baseURL)/sandbox/executions/EXECUTION/3ds -d '{"result":"success"}'  # or fail, abandon
          curl -X POST \(baseURL)/sandbox/executions/EXECUTION/pay -d '{"outcome":"decline","reason":"InsufficientBalance"}'
        outcome: success, decline, 3ds, redirect, confirm, pending, timeout, cascade; without one the card's last
        digits decide: 4242 pays, 3220 3-D Secure, 0002 GenericRejection, 9995 InsufficientBalance,
        0069 ExpiredInstrument, 9987 BlockedInstrument, 0119 ProviderTimeout that took the money.

        GET  /sandbox/ledger[?merchantReference=]    what really happened to the money
        GET  /sandbox/calls[?route=]                 what was called
        GET  /sandbox/executions?merchantReference=  GET /sandbox/executions/EXECUTION
        GET  /sandbox/notifications                  deliveries and their attempts
        POST /sandbox/notifications/flush            attempts now what waits
        POST /sandbox/notifications/redeliver        {executionId}: everything about it once more
        POST /sandbox/notifications/raw              signs these bytes as they are, and sends them
        POST /sandbox/notification-targets           {targets: [{url, key}]}, for new executions
        POST /sandbox/executions/EXECUTION/…         pay, 3ds, abandon, expire-session, dispute, update-result,
                                                     move-amount, portal {action}, status {code}
        POST /sandbox/outcomes                       {outcome, card?, merchantReference?, action?, times?, …}
        POST /sandbox/faults                         {kind, route?, times?, ms?, status?, …}; DELETE takes all away
        POST /sandbox/notification-faults            {kind: late|twice|shuffled|lost|wrongSignature|bare, …}
        POST /sandbox/holders/REFERENCE/tokenize     {card, expiryMonth, expiryYear}: saves a card
        POST /sandbox/instruments/ID                 {expiryMonth, status, …}: the card changed by itself
        POST /sandbox/credentials                    {clientId, clientSecret}: adds or replaces; none: revokes
        POST /sandbox/rotate-key                     {url, key}: signs with another key from now on
        POST /sandbox/expire-tokens, /sandbox/settle, /sandbox/reset
        """
    }
}
