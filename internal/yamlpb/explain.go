package yamlpb

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// rules turn the messages of generated code into advice. The first match counts.
var rules = []struct {
	pattern *regexp.Regexp
	advice  string
}{
	{anchored(`value is required( and must not be nil\.)?`), "is missing: give it a value"},
	{anchored(`value length must be at least 1 (?:runes|bytes)`), "is empty or missing: give it a value"},
	{anchored(`value length must be at least (\d+) (?:runes|bytes)`), "is too short: write at least $1 characters"},
	{anchored(`value length must be at most (\d+) (?:runes|bytes)`), "is too long: write at most $1 characters"},
	{anchored(`value length must be between (\d+) and (\d+) (?:runes|bytes), inclusive`), "has the wrong length: write from $1 to $2 characters"},
	{anchored(`value length must be (\d+) (?:runes|bytes)`), "has the wrong length: write $1 characters"},
	{anchored(`value must be greater than or equal to (\S+)`), "is too small: write $1 or more"},
	{anchored(`value must be greater than (\S+)`), "is too small: write more than $1"},
	{anchored(`value must be less than or equal to (\S+)`), "is too large: write $1 or less"},
	{anchored(`value must be less than (\S+)`), "is too large: write less than $1"},
	{anchored(`value must be inside range \[(\S+), (\S+)\]`), "is out of range: write from $1 to $2"},
	{anchored(`value must be inside range \((\S+), (\S+)\]`), "is out of range: write more than $1, and $2 at most"},
	{anchored(`value must be inside range \[(\S+), (\S+)\)`), "is out of range: write at least $1, and less than $2"},
	{anchored(`value must be inside range \((\S+), (\S+)\)`), "is out of range: write more than $1, and less than $2"},
	{anchored(`value must be outside range [([](\S+), (\S+)[)\]]`), "is out of range: write no value between $1 and $2"},
	{anchored(`value must contain at least (\d+) (?:item\(s\)|pair\(s\))`), "has too few elements: give $1 or more"},
	{anchored(`value must contain no more than (\d+) (?:item\(s\)|pair\(s\))`), "has too many elements: give $1 at most"},
	{anchored(`value must contain exactly (\d+) (?:item\(s\)|pair\(s\))`), "has the wrong number of elements: give $1"},
	{anchored(`value must be one of the defined enum values`), "is not one of the values: write the name of one"},
	{anchored(`value must not be in list \[(.+)\]`), "cannot be $1: write another value"},
	{anchored(`value must be in list \[(.+)\]`), "is not possible: write one of $1"},
	{anchored(`value must equal (.+)`), "is not possible: write $1"},
	{anchored(`value is not a valid duration`), `is no duration: write one in seconds, as "0.5s"`},
	{anchored(`value does not match regex pattern "\^\[\^\\x00.*`), "holds a control character, such as a line break: take it out"},
	{anchored(`value does not match regex pattern (.+)`), "has a form that is not possible: write what the regular expression $1 matches"},
}

func anchored(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + pattern + "$") }

// explain describes the fault of a value and how to fix it. For unusual faults, it returns the
// message of the generated code.
func explain(reason string) string {
	for _, rule := range rules {
		if rule.pattern.MatchString(reason) {
			return rule.pattern.ReplaceAllString(reason, rule.advice)
		}
	}
	return reason
}

// noneOf describes a oneof without a field.
func noneOf(oneof protoreflect.OneofDescriptor) string {
	fields := oneof.Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).TextName()
	}
	return "is missing: give one of " + strings.Join(names, ", ")
}
