package specifier

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var bindMessages = map[protoreflect.FullName]messageRule{
	"envoy.config.core.v3.BindConfig": rule(ruleBind),
}

func ruleBind(r *review, path string, b *corev3.BindConfig) {
	if port := b.GetSourceAddress().GetPortValue(); port != 0 {
		r.problem(join(path, "source_address.port_value"), "is %d, and checks of several endpoints cannot share a port; use 0", port)
	}
}
