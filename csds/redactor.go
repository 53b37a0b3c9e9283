package csds

import (
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/internal/redact"
)

// redactor hides the sensitive parts of configurations. It redacts each once, because
// clients share them, so a configuration must not change while the redactor is in use.
type redactor struct {
	redacted map[*byte]*anypb.Any // by the first byte of the value
}

// shown returns a configuration without sensitive parts: the same one if it has none, nil if it
// cannot be read.
func (r *redactor) shown(a *anypb.Any) *anypb.Any {
	if len(a.GetValue()) == 0 {
		return a
	}
	key := &a.GetValue()[0]
	if cached, ok := r.redacted[key]; ok {
		return cached
	}
	redacted := redact.Any(a)
	if r.redacted == nil {
		r.redacted = make(map[*byte]*anypb.Any)
	}
	r.redacted[key] = redacted
	return redacted
}
