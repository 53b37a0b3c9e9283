package csds

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// text compiles a StringMatcher. As in Envoy, only ASCII letters can ignore case, and
// regular expressions never do.
func (c *compiler) text(m *matcherv3.StringMatcher) (func(string) bool, error) {
	if err := c.count(); err != nil {
		return nil, err
	}
	var field, pattern string
	var match func(s, pattern string) bool
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		field, pattern, match = "exact", p.Exact, func(s, pattern string) bool { return s == pattern }
	case *matcherv3.StringMatcher_Prefix:
		field, pattern, match = "prefix", p.Prefix, strings.HasPrefix
	case *matcherv3.StringMatcher_Suffix:
		field, pattern, match = "suffix", p.Suffix, strings.HasSuffix
	case *matcherv3.StringMatcher_Contains:
		field, pattern, match = "contains", p.Contains, strings.Contains
	case *matcherv3.StringMatcher_SafeRegex:
		match, err := c.regex(p.SafeRegex)
		if err != nil {
			return nil, fmt.Errorf(".safe_regex%w", err)
		}
		return match, nil
	case *matcherv3.StringMatcher_Custom:
		return nil, errors.New(".custom: is not supported; use exact, prefix, suffix, contains or safe_regex")
	default:
		return nil, errors.New(": needs one of exact, prefix, suffix, contains or safe_regex")
	}
	if pattern == "" && field != "exact" {
		return nil, fmt.Errorf(".%s: must not be empty", field)
	}
	if m.GetIgnoreCase() {
		pattern = lower(pattern)
		return func(s string) bool { return match(lower(s), pattern) }, nil
	}
	return func(s string) bool { return match(s, pattern) }, nil
}

// lower converts ASCII letters to lower case.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

// regex compiles an expression that has to match a whole text.
func (c *compiler) regex(m *matcherv3.RegexMatcher) (func(string) bool, error) {
	switch {
	case m.GetRegex() == "":
		return nil, errors.New(".regex: must not be empty")
	case len(m.GetRegex()) > maxRegexBytes:
		return nil, fmt.Errorf(".regex: may have up to %d bytes", maxRegexBytes)
	}
	// Parse it alone first: the text added around it could make it valid.
	parsed, err := syntax.Parse(m.GetRegex(), syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf(".regex: is not valid RE2: %w", err)
	}
	size, limit := programSize(parsed), maxRegexProgram
	if size := m.GetGoogleRe2().GetMaxProgramSize(); size != nil {
		limit = min(limit, int(size.GetValue()))
	}
	c.programs += size
	switch {
	case size > limit:
		return nil, fmt.Errorf(".regex: is too complex: its program has about %d instructions, and may have %d", size, limit)
	case c.programs > maxRegexPrograms:
		return nil, fmt.Errorf(".regex: the expressions of a request are too complex: they may have %d instructions together", maxRegexPrograms)
	}
	whole, err := regexp.Compile(`\A(?:` + m.GetRegex() + `)\z`)
	if err != nil {
		return nil, fmt.Errorf(".regex: %w", err)
	}
	return whole.MatchString, nil
}

// programSize estimates the instructions of an expression without compiling it:
// repetitions multiply.
func programSize(r *syntax.Regexp) int {
	size := 1 + len(r.Rune)
	if r.Op == syntax.OpCharClass {
		size = 1
	}
	for _, sub := range r.Sub {
		size += programSize(sub)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Max, r.Min+1)
	}
	return size
}
