package specifier

import (
	"fmt"
	"strconv"
	"strings"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	"hdsd/health"
)

// action is the handling of a set field. A field without a treatment is refused.
type action uint8

const (
	refuse   action = iota // exclude the endpoint or cluster, with a reason
	leaveOut               // do not send: checking does not depend on it
	keep                   // test the value, then send
)

// treatment is the handling of one field.
type treatment struct {
	action action
	test   func(protoreflect.Value) string // returns the fault of a value (of a list: of an element), or ""
	advice string                          // reason why a field is refused, and the alternative
}

func kept(test func(protoreflect.Value) string) treatment { return treatment{action: keep, test: test} }

func refused(advice string) treatment { return treatment{advice: advice} }

var (
	sent    = treatment{action: keep} // any value is harmless
	leftOut = treatment{action: leaveOut}
)

// review finds content of messages that must not be sent.
type review struct {
	options  Options
	needs    map[health.Ability]bool
	problems []string // each "path: what is wrong"
	looking  bool     // change nothing, but set dirty if a change is needed
	dirty    bool

	replaced map[*tlsv3.SdsSecretConfig]bool // by options.SDSConfig
}

func (r *review) problem(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	r.problems = append(r.problems, text)
}

func (r *review) need(a health.Ability) {
	if r.needs == nil {
		r.needs = map[health.Ability]bool{}
	}
	r.needs[a] = true
}

// reason returns the problems in one line, "" if there are none.
func (r *review) reason() string {
	const shown = 3
	if len(r.problems) > shown && !r.options.Verbose {
		return strings.Join(r.problems[:shown], "; ") + fmt.Sprintf("; and %d more problems", len(r.problems)-shown)
	}
	return strings.Join(r.problems, "; ")
}

// message reviews every set field of m and of the messages in it. It clears omitted fields, so m
// must belong to the package. A review that is only looking changes nothing.
func (r *review) message(path string, m protoreflect.Message) {
	if len(m.GetUnknown()) > 0 {
		r.problem(path, "holds a field that this release of hdsd does not know; take it out or use a newer hdsd")
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if fd := fields.Get(i); m.Has(fd) {
			r.field(join(path, string(fd.Name())), m, fd)
		}
	}
	if test, ok := messages[m.Descriptor().FullName()]; ok {
		test(r, path, m.Interface())
	}
}

func (r *review) field(path string, m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	t, ok := treatments[fd.FullName()]
	switch {
	case !ok:
		r.problem(path, "hdsd does not know what this field does to a checker; take it out")
	case t.action == refuse:
		r.problem(path, "%s", t.advice)
	case t.action == leaveOut:
		r.dirty = true
		if !r.looking {
			m.Clear(fd)
		}
	case fd.IsMap():
		// Of the reviewed messages only a Struct has maps, and it is data.
	case fd.IsList():
		list := m.Get(fd).List()
		for i := range list.Len() {
			r.value(path+"["+strconv.Itoa(i)+"]", t, fd, list.Get(i))
		}
	default:
		r.value(path, t, fd, m.Get(fd))
	}
}

func (r *review) value(path string, t treatment, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	if fd.Enum() != nil && fd.Enum().Values().ByNumber(v.Enum()) == nil {
		r.problem(path, "%d is not a value of %s", v.Enum(), fd.Enum().Name())
		return
	}
	if t.test != nil {
		if wrong := t.test(v); wrong != "" {
			r.problem(path, "%s", wrong)
			return
		}
	}
	if fd.Message() != nil && !leaves[fd.Message().FullName()] {
		r.message(path, v.Message())
	}
}

// leaves are messages that are tested as values, by the field that has them.
var leaves = map[protoreflect.FullName]bool{
	"google.protobuf.Duration": true, "google.protobuf.BoolValue": true, "google.protobuf.UInt32Value": true,
	"google.protobuf.UInt64Value": true, "google.protobuf.Struct": true, "google.protobuf.Any": true,
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
