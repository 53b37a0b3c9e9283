package config

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// live lists the fields that a running coordinator can apply. All others need a
// restart. Changes, Reloaded and NeedRestart use it.
var live = []string{
	"sources",
	"default_health_checks",
	"mode",
	"policies",
	"assignment.redundancy",
	"assignment.zones",
	"assignment.regions",
	"assignment.checkers",
	"verdict",
	"history.retention",
	"history.require_writable",
	"history.max_bytes",
	"checkers",
	"access",
	"relay.health",
	"notify",
	"metrics",
}

// Changes names the fields in which two configurations differ: those that can change
// while hdsd runs, and those that need a restart.
func Changes(previous, next *Config) (reloadable, needRestart []string) {
	d := &difference{}
	d.message("", previous.ProtoReflect(), next.ProtoReflect())
	return d.live, d.restart
}

// NeedRestart names the fields that need a restart, including all fields within them.
func NeedRestart() (names []string) {
	restartOnly("", (&Config{}).ProtoReflect(), (&Config{}).ProtoReflect(), func(name string, _, _ protoreflect.Message, _ protoreflect.FieldDescriptor) {
		names = append(names, name)
	})
	return names
}

// Reloaded returns the configuration that a coordinator has after a reload: next, but
// with the fields of started that need a restart.
func Reloaded(started, next *Config) *Config {
	kept, adopted := proto.CloneOf(started), proto.CloneOf(next)
	restartOnly("", kept.ProtoReflect(), adopted.ProtoReflect(), func(_ string, from, to protoreflect.Message, field protoreflect.FieldDescriptor) {
		to.Clear(field)
		if from.Has(field) {
			to.Set(field, from.Get(field))
		}
	})
	return adopted
}

// restartOnly visits the differing fields of two messages that need a restart, the
// outermost of each.
func restartOnly(prefix string, a, b protoreflect.Message, visit func(name string, a, b protoreflect.Message, field protoreflect.FieldDescriptor)) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		name := prefix + field.TextName()
		switch {
		case slices.Contains(live, name):
		case slices.ContainsFunc(live, func(p string) bool { return strings.HasPrefix(p, name+".") }):
			restartOnly(name+".", a.Mutable(field).Message(), b.Mutable(field).Message(), visit)
		default:
			visit(name, a, b, field)
		}
	}
}

type difference struct{ live, restart []string }

func (d *difference) message(prefix string, a, b protoreflect.Message) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		name := prefix + field.TextName()
		changes := slices.Contains(live, name)
		if isPart(field) && !changes {
			d.message(name+".", a.Get(field).Message(), b.Get(field).Message())
			continue
		}
		if sameField(a, b, field) {
			continue
		}
		if changes {
			d.live = append(d.live, name)
		} else {
			d.restart = append(d.restart, name)
		}
	}
}

// isPart reports whether a field is one of hdsd's own messages. Their fields are
// compared one by one; all others as a whole.
func isPart(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && !field.IsList() && !field.IsMap() && field.Message().ParentFile() == (&Config{}).ProtoReflect().Descriptor().ParentFile()
}

// sameField compares one field, by messages with only that field.
func sameField(a, b protoreflect.Message, field protoreflect.FieldDescriptor) bool {
	return proto.Equal(onlyField(a, field), onlyField(b, field))
}

func onlyField(m protoreflect.Message, field protoreflect.FieldDescriptor) proto.Message {
	alone := m.Type().New()
	if m.Has(field) {
		alone.Set(field, m.Get(field))
	}
	return alone.Interface()
}
