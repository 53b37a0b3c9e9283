// Package endpointpb makes and decodes messages of endpoints, several times as fast as the
// protobuf library where an endpoint is no more than an address and a port, as almost all
// are. It also encodes such endpoints without messages, and packs them into their locality.
//
// It is pure, and starts no goroutine. Of this module it imports internal/fields.
package endpointpb
