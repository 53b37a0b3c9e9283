// Package origin keeps web pages away from an HTTP server that trusts its network.
//
// A browser sends requests for any page that its user opens. Check refuses those that a
// page of another site made, and those that reach hdsd under a name that is not its own:
// an attacker can make a name resolve to hdsd's address (DNS rebinding). It does so for
// every path and method. SetHeaders says the same to the browser, for each answer.
//
// It has no state and starts no goroutine. Of this module it imports internal/rest, for
// errors with an HTTP status.
package origin
