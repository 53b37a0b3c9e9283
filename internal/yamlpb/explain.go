package yamlpb

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// rules turn the messages of generated code into advice. The first match counts.
var rules = []struct {
	says   *regexp.Regexp
	advice string
}{
	{said(`value is required( and must not be nil\.)?`), "is missing: give it a value"},
	{said(`value length must be at least 1 (?:runes|bytes)`), "is empty or missing: give it a value"},
	{said(`value length must be at least (\d+) (?:runes|bytes)`), "is too short: write at least $1 characters"},
	{said(`value length must be at most (\d+) (?:runes|bytes)`), "is too long: write at most $1 characters"},
	{said(`value length must be between (\d+) and (\d+) (?:runes|bytes), inclusive`), "has the wrong length: write from $1 to $2 characters"},
	{said(`value length must be (\d+) (?:runes|bytes)`), "has the wrong length: write $1 characters"},
	{said(`value must be greater than or equal to (\S+)`), "is too small: write $1 or more"},
	{said(`value must be greater than (\S+)`), "is too small: write more than $1"},
	{said(`value must be less than or equal to (\S+)`), "is too large: write $1 or less"},
	{said(`value must be less than (\S+)`), "is too large: write less than $1"},
	{said(`value must be inside range \[(\S+), (\S+)\]`), "is out of range: write from $1 to $2"},
	{said(`value must be inside range \((\S+), (\S+)\]`), "is out of range: write more than $1, and $2 at most"},
	{said(`value must be inside range \[(\S+), (\S+)\)`), "is out of range: write at least $1, and less than $2"},
	{said(`value must be inside range \((\S+), (\S+)\)`), "is out of range: write more than $1, and less than $2"},
	{said(`value must be outside range [([](\S+), (\S+)[)\]]`), "is out of range: write no value between $1 and $2"},
	{said(`value must contain at least (\d+) (?:item\(s\)|pair\(s\))`), "has too few elements: give $1 or more"},
	{said(`value must contain no more than (\d+) (?:item\(s\)|pair\(s\))`), "has too many elements: give $1 at most"},
	{said(`value must contain exactly (\d+) (?:item\(s\)|pair\(s\))`), "has the wrong number of elements: give $1"},
	{said(`value must be one of the defined enum values`), "is not one of the values: write the name of one"},
	{said(`value must not be in list \[(.+)\]`), "cannot be $1: write another value"},
	{said(`value must be in list \[(.+)\]`), "is not possible: write one of $1"},
	{said(`value must equal (.+)`), "is not possible: write $1"},
	{said(`value is not a valid duration`), `is no duration: write one in seconds, as "0.5s"`},
	{said(`value does not match regex pattern "\^\[\^\\x00.*`), "holds a control character, such as a line break: take it out"},
	{said(`value does not match regex pattern (.+)`), "has a form that is not possible: write what the regular expression $1 matches"},
}

func said(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + pattern + "$") }

// explain says what is wrong with a value and how to fix it. For unusual faults, it
// returns the message of the generated code.
func explain(reason string) string {
	for _, rule := range rules {
		if rule.says.MatchString(reason) {
			return rule.says.ReplaceAllString(reason, rule.advice)
		}
	}
	return reason
}

// noneOf says that one of the fields of a oneof is required.
func noneOf(oneof protoreflect.OneofDescriptor) string {
	fields := oneof.Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = fields.Get(i).TextName()
	}
	return "is missing: give one of " + strings.Join(names, ", ")
}
