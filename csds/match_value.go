package csds

import (
	"errors"
	"fmt"
	"slices"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// matchValue tells whether a value matches; nil stands for a missing value.
type matchValue func(*structpb.Value) bool

// value compiles a ValueMatcher.
func (c *compiler) value(m *matcherv3.ValueMatcher, depth int) (matchValue, error) {
	if depth > maxMatcherDepth {
		return nil, fmt.Errorf(": value matchers may be up to %d deep", maxMatcherDepth)
	}
	if err := c.count(); err != nil {
		return nil, err
	}
	match, field, err := c.pattern(m, depth)
	if err != nil {
		return nil, fmt.Errorf("%s%w", field, err)
	}
	return match, nil
}

func (c *compiler) pattern(m *matcherv3.ValueMatcher, depth int) (match matchValue, field string, err error) {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.ValueMatcher_NullMatch_:
		return isNull, "", nil
	case *matcherv3.ValueMatcher_BoolMatch:
		return func(v *structpb.Value) bool {
			b, ok := v.GetKind().(*structpb.Value_BoolValue)
			return ok && b.BoolValue == p.BoolMatch
		}, "", nil
	case *matcherv3.ValueMatcher_PresentMatch:
		return func(v *structpb.Value) bool { return present(v, p.PresentMatch) }, "", nil
	case *matcherv3.ValueMatcher_DoubleMatch:
		match, err = number(p.DoubleMatch)
		return match, ".double_match", err
	case *matcherv3.ValueMatcher_StringMatch:
		text, err := c.text(p.StringMatch)
		return func(v *structpb.Value) bool {
			s, ok := v.GetKind().(*structpb.Value_StringValue)
			return ok && text(s.StringValue)
		}, ".string_match", err
	case *matcherv3.ValueMatcher_ListMatch:
		match, err = c.list(p.ListMatch, depth+1)
		return match, ".list_match", err
	case *matcherv3.ValueMatcher_OrMatch:
		match, err = c.anyOf(p.OrMatch, depth+1)
		return match, ".or_match", err
	}
	return nil, "", errors.New(": needs one of null_match, double_match, string_match, bool_match, present_match, list_match or or_match")
}

func isNull(v *structpb.Value) bool {
	_, ok := v.GetKind().(*structpb.Value_NullValue)
	return ok
}

// present reports whether there is a primitive value or, if not wanted, no value. Lists and
// structures match neither.
func present(v *structpb.Value, wanted bool) bool {
	switch v.GetKind().(type) {
	case nil:
		return !wanted
	case *structpb.Value_ListValue, *structpb.Value_StructValue:
		return false
	default:
		return wanted
	}
}

func number(m *matcherv3.DoubleMatcher) (matchValue, error) {
	var match func(float64) bool
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.DoubleMatcher_Exact:
		match = func(f float64) bool { return f == p.Exact }
	case *matcherv3.DoubleMatcher_Range:
		start, end := p.Range.GetStart(), p.Range.GetEnd()
		match = func(f float64) bool { return start <= f && f < end }
	default:
		return nil, errors.New(": needs range or exact")
	}
	return func(v *structpb.Value) bool {
		n, ok := v.GetKind().(*structpb.Value_NumberValue)
		return ok && match(n.NumberValue)
	}, nil
}

func (c *compiler) list(m *matcherv3.ListMatcher, depth int) (matchValue, error) {
	if m.GetOneOf() == nil {
		return nil, errors.New(": needs one_of")
	}
	match, err := c.value(m.GetOneOf(), depth)
	if err != nil {
		return nil, fmt.Errorf(".one_of%w", err)
	}
	return func(v *structpb.Value) bool { return slices.ContainsFunc(v.GetListValue().GetValues(), match) }, nil
}

func (c *compiler) anyOf(m *matcherv3.OrMatcher, depth int) (matchValue, error) {
	if len(m.GetValueMatchers()) < 2 {
		return nil, errors.New(".value_matchers: needs two or more")
	}
	var alternatives []matchValue
	for i, alternative := range m.GetValueMatchers() {
		match, err := c.value(alternative, depth)
		if err != nil {
			return nil, fmt.Errorf(".value_matchers[%d]%w", i, err)
		}
		alternatives = append(alternatives, match)
	}
	return func(v *structpb.Value) bool {
		for _, match := range alternatives {
			if match(v) {
				return true
			}
		}
		return false
	}, nil
}
