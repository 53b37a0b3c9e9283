package xds

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// Limits of a NACK's message: first resources with reasons, then names alone.
const (
	maxReasonBytes = 4 << 10
	maxNameBytes   = 8 << 10
	maxOneReason   = 512
	maxRefused     = 1000 // named resources
)

// rejection lists the refused resources of a response.
type rejection struct {
	whole    string    // reason why all of it is refused; empty: some is accepted
	total    int       // resources in the response
	refused  []refused // the first of them
	count    int       // number of refused ones
	nameless bool      // one of them has no readable name
}

type refused struct{ name, reason string }

func (r *rejection) add(name, reason string) {
	if r.count++; len(r.refused) < maxRefused {
		r.refused = append(r.refused, refused{name, reason})
	}
}

// name records the faulty candidates, in their order.
func (r *rejection) name(candidates map[string]*candidate) {
	var wrong []string
	for name, c := range candidates {
		if c.wrong != "" {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(wrong)
	for _, name := range wrong {
		r.add(name, candidates[name].wrong)
	}
}

func (r *rejection) empty() bool { return r.whole == "" && len(r.refused) == 0 }

// String names each refused resource, as far as there is room.
func (r *rejection) String() string {
	if r.whole != "" {
		return "refused as a whole: " + r.whole
	}
	slices.SortFunc(r.refused, func(a, b refused) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d resources refused", r.count, r.total)
	separator := ": "
	for i, entry := range r.refused {
		text := entry.name
		if b.Len() < maxReasonBytes {
			text += " (" + clip(entry.reason, maxOneReason) + ")"
		}
		if b.Len()+len(text) > maxReasonBytes+maxNameBytes {
			return fmt.Sprintf("%s and %d more", b.String(), r.count-i)
		}
		b.WriteString(separator + text)
		separator = ", "
	}
	if rest := r.count - len(r.refused); rest > 0 {
		fmt.Fprintf(&b, " and %d more", rest)
	}
	return b.String()
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// status returns the error detail of a NACK.
func (r *rejection) status() *statuspb.Status {
	if r == nil {
		return nil
	}
	return &statuspb.Status{Code: int32(codes.InvalidArgument), Message: strings.ToValidUTF8(r.String(), "")}
}
