package check

import (
	"fmt"
	"regexp"
	"strings"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// matcher reports whether a string matches.
type matcher func(string) bool

func newMatcher(m *matcherv3.StringMatcher) (matcher, error) {
	fold := func(s string) string { return s }
	if m.GetIgnoreCase() {
		fold = strings.ToLower
	}
	compare := func(f func(s, want string) bool, want string) matcher {
		want = fold(want)
		return func(s string) bool { return f(fold(s), want) }
	}
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return compare(func(s, want string) bool { return s == want }, p.Exact), nil
	case *matcherv3.StringMatcher_Prefix:
		return compare(strings.HasPrefix, p.Prefix), nil
	case *matcherv3.StringMatcher_Suffix:
		return compare(strings.HasSuffix, p.Suffix), nil
	case *matcherv3.StringMatcher_Contains:
		return compare(strings.Contains, p.Contains), nil
	case *matcherv3.StringMatcher_SafeRegex:
		expression, err := regexp.Compile("^(?:" + p.SafeRegex.GetRegex() + ")$")
		if err != nil {
			return nil, fmt.Errorf("safe_regex: %w", err)
		}
		return expression.MatchString, nil
	default:
		return nil, fmt.Errorf("a pattern of type %T is not supported", p)
	}
}
