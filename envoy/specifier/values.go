package specifier

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Bounds that are stricter than Envoy's. Values beyond them are mistakes, and would
// cost checkers memory or never take effect.
const (
	maxDuration = 24 * time.Hour
	maxText     = 1024
	maxPayload  = 64 << 10
	maxBuffer   = 1 << 20
	maxPipe     = 107 // bytes, since a socket's path ends with a zero byte in 108
)

// The tests of values. Each returns the fault of a value, or "".

func positiveDuration(v protoreflect.Value) string {
	if d := duration(v); !d.IsValid() || d.AsDuration() < time.Millisecond || d.AsDuration() > maxDuration {
		return fmt.Sprintf("must be from 1ms to %v", maxDuration)
	}
	return ""
}

func anyDuration(v protoreflect.Value) string {
	if d := duration(v); !d.IsValid() || d.AsDuration() < 0 || d.AsDuration() > maxDuration {
		return fmt.Sprintf("must be from 0s to %v", maxDuration)
	}
	return ""
}

func duration(v protoreflect.Value) *durationpb.Duration {
	d, _ := v.Message().Interface().(*durationpb.Duration)
	return d
}

// atMost bounds a number, plain or wrapped.
func atMost(greatest uint64, unit string) func(protoreflect.Value) string {
	return func(v protoreflect.Value) string {
		var n uint64
		switch value := v.Interface().(type) {
		case uint32:
			n = uint64(value)
		case protoreflect.Message:
			n = value.Get(value.Descriptor().Fields().ByName("value")).Uint()
		}
		if n > greatest {
			return fmt.Sprintf("is %d; %s is at most %d", n, unit, greatest)
		}
		return ""
	}
}

func bytesAtMost(greatest int) func(protoreflect.Value) string {
	return func(v protoreflect.Value) string {
		if n := len(v.Bytes()); n > greatest {
			return fmt.Sprintf("has %d bytes; at most %d are sent", n, greatest)
		}
		return ""
	}
}

func hexadecimal(v protoreflect.Value) string {
	if _, err := hex.DecodeString(v.String()); err != nil {
		return fmt.Sprintf("%q is not hexadecimal (pairs of digits, no spaces)", clip(v.String()))
	}
	if len(v.String()) > 2*maxPayload {
		return fmt.Sprintf("stands for more than %d bytes", maxPayload)
	}
	return ""
}

// shortText accepts text without control characters.
func shortText(v protoreflect.Value) string {
	s := v.String()
	switch {
	case len(s) > maxText:
		return fmt.Sprintf("has %d bytes; at most %d are sent", len(s), maxText)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, isControl):
		return fmt.Sprintf("%q holds a control character; take it out", clip(s))
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// headerFormat accepts a header's value without Envoy's substitutions. These need a
// downstream request, which a health check does not have.
func headerFormat(v protoreflect.Value) string {
	if wrong := shortText(v); wrong != "" {
		return wrong
	}
	if rest := strings.ReplaceAll(v.String(), "%%", ""); strings.Contains(rest, "%") {
		return fmt.Sprintf("%q holds a substitution, which hdsd does not pass on; write it out (and a lone %% as %%%%)", clip(v.String()))
	}
	return ""
}

var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are headers for the routing and framing of a message.
var ownHeaders = map[string]bool{
	"host": true, "content-length": true, "transfer-encoding": true, "connection": true, "upgrade": true, "keep-alive": true,
	"proxy-connection": true, "te": true, "trailer": true, "expect": true, "http2-settings": true,
}

func headerName(v protoreflect.Value) string {
	s := v.String()
	switch {
	case len(s) > maxText || !token.MatchString(s):
		return fmt.Sprintf("%q is no name of a header", clip(s))
	case ownHeaders[strings.ToLower(s)]:
		return fmt.Sprintf("%q would break the request; take it out (host and method have fields of their own)", s)
	}
	return ""
}

func protocolName(v protoreflect.Value) string {
	if n := len(v.String()); n == 0 || n > 255 {
		return "must have 1 to 255 bytes"
	}
	return shortText(v)
}

func regularExpression(v protoreflect.Value) string {
	if wrong := shortText(v); wrong != "" {
		return wrong
	}
	switch size, err := programSize(v.String()); {
	case err != nil:
		return fmt.Sprintf("%q is no regular expression of RE2: %v", clip(v.String()), err)
	case size > maxProgram:
		return fmt.Sprintf("%q is too complex; make it shorter, or use exact, prefix, suffix or contains", clip(v.String()))
	}
	return ""
}

// maxProgram is below the 100 instructions at which Envoy refuses a regular expression.
// The margin is for the estimate.
const maxProgram = 80

// programSize estimates, rather too high, the number of instructions of an expression
// in RE2. RE2 works on bytes, so characters outside of ASCII cost more.
func programSize(expression string) (int, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	size := 0
	for i := range program.Inst {
		inst := &program.Inst[i]
		switch inst.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			size += 12
		case syntax.InstRune, syntax.InstRune1:
			size += len(inst.Rune)/2 + 1
			if slices.ContainsFunc(inst.Rune, func(r rune) bool { return r > 0x7f }) {
				size += 12 * len(inst.Rune)
			}
		default:
			size++
		}
	}
	return size, nil
}

func ip(v protoreflect.Value) string {
	switch a, err := netip.ParseAddr(v.String()); {
	case err != nil:
		return fmt.Sprintf("%q is not an IP address, and checkers resolve no names; give the IP address, or have hdsd resolve the names of DNS clusters (resolve_names)", clip(v.String()))
	case a.Zone() != "":
		return fmt.Sprintf("%q names an interface, and those of a checker may be others; give an address without one", clip(v.String()))
	}
	return ""
}

func pipePath(v protoreflect.Value) string {
	s := v.String()
	switch {
	case s == "" || s == "@":
		return "names no socket"
	case len(s) > maxPipe:
		return fmt.Sprintf("has %d bytes; a socket's path has at most %d", len(s), maxPipe)
	case strings.ContainsFunc(s, isControl):
		return fmt.Sprintf("%q holds a control character; take it out", clip(s))
	}
	return ""
}

// clip shortens quotes in a reason.
func clip(s string) string {
	const longest = 80
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}
