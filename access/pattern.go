package access

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Node is what a checker or a data plane says of itself.
type Node struct {
	ID, Region, Zone string
}

// kind is the kind of a name in a certificate.
type kind uint8

const (
	dnsName kind = iota
	emailAddress
	uri
)

// Pattern matches names in certificates, and binds what a node says of itself.
type Pattern struct {
	text     string
	kind     kind
	segments [][]token // what is between slashes
	binds    bool
	bindsID  bool
}

// token is a part of a segment: a literal, any run of characters, or a variable.
type token struct {
	literal  string
	star     bool
	variable variable
}

// variable is what a part of a name binds.
type variable uint8

const (
	none variable = iota
	nodeID
	region
	zone
)

var variables = map[string]variable{"node.id": nodeID, "region": region, "zone": zone}

func (v variable) of(n *Node) string {
	switch v {
	case nodeID:
		return n.ID
	case region:
		return n.Region
	default:
		return n.Zone
	}
}

func (t token) wild() bool { return t.star || t.variable != none }

// ParsePattern reads a pattern. Its errors are written for whoever wrote it.
func ParsePattern(text string) (*Pattern, error) {
	p := &Pattern{text: text, kind: dnsName}
	switch {
	case strings.Contains(text, ":"):
		p.kind = uri
	case strings.Contains(text, "@"):
		p.kind = emailAddress
	}
	for segment := range strings.SplitSeq(text, "/") {
		tokens, err := tokensOf(segment)
		if err != nil {
			return nil, err
		}
		for i, t := range tokens {
			p.binds = p.binds || t.variable != none
			p.bindsID = p.bindsID || t.variable == nodeID
			if i > 0 && t.wild() && tokens[i-1].wild() && t.variable+tokens[i-1].variable != none {
				return nil, fmt.Errorf("%q: nothing stands between two wildcards, so nobody can tell where one ends: write a character between them", segment)
			}
		}
		p.segments = append(p.segments, tokens)
	}
	return p, nil
}

// tokensOf reads a segment.
func tokensOf(segment string) (tokens []token, err error) {
	for rest := segment; rest != ""; {
		at := strings.IndexAny(rest, "*{}")
		if at != 0 {
			literal := rest
			if at > 0 {
				literal = rest[:at]
			}
			tokens, rest = append(tokens, token{literal: literal}), rest[len(literal):]
			continue
		}
		if rest[0] == '*' {
			tokens, rest = append(tokens, token{star: true}), strings.TrimLeft(rest, "*")
			continue
		}
		name, after, closed := strings.Cut(rest[1:], "}")
		bound, known := variables[name]
		if rest[0] == '}' || !closed || !known {
			return nil, fmt.Errorf("%q: braces hold {node.id}, {region} or {zone}, and nothing else", segment)
		}
		tokens, rest = append(tokens, token{variable: bound}), after
	}
	return tokens, nil
}

// String is the pattern as written.
func (p *Pattern) String() string { return p.text }

// names are those of a certificate, by kind.
type names [3][]string

func namesIn(leaf *x509.Certificate) names {
	if leaf == nil {
		return names{}
	}
	uris := make([]string, len(leaf.URIs))
	for i, each := range leaf.URIs {
		uris[i] = each.String()
	}
	return names{dnsName: leaf.DNSNames, emailAddress: leaf.EmailAddresses, uri: uris}
}

// Match reports whether the pattern matches a name. With a node, what the name binds
// has to be what the node says; without one it may be anything.
func (p *Pattern) Match(name string, node *Node) bool {
	for i, segment := range p.segments {
		part, rest, more := strings.Cut(name, "/")
		if more != (i < len(p.segments)-1) || !matchSegment(segment, part, node) {
			return false
		}
		name = rest
	}
	return true
}

// matchSegment matches a part of a name without slashes. Of the last star that could
// stand for more, it tries to stand for one character more: earlier ones need not.
func matchSegment(tokens []token, text string, node *Node) bool {
	if node != nil && !unmistakable(tokens, node) {
		return false
	}
	at, next := 0, 0 // in the text, in the tokens
	star, tried := -1, 0
	for at < len(text) || next < len(tokens) {
		if next < len(tokens) {
			literal, least, any := tokens[next].as(node)
			if any {
				star, tried = next, at+least
				at, next = tried, next+1
				if at > len(text) {
					return false
				}
				continue
			}
			if strings.HasPrefix(text[at:], literal) {
				at, next = at+len(literal), next+1
				continue
			}
		}
		if star < 0 || tried >= len(text) {
			return false
		}
		tried++
		at, next = tried, star+1
	}
	return true
}

// as gives what a token stands for: a literal, or any run of at least so many
// characters.
func (t token) as(node *Node) (literal string, least int, any bool) {
	switch {
	case t.star:
		return "", 0, true
	case t.variable == none:
		return t.literal, 0, false
	case node == nil:
		return "", 1, true
	}
	return t.variable.of(node), 0, false
}

// unmistakable reports whether a name that matches with this node's values matches
// with no others. So values are not empty, and what separates them from the next wildcard
// is found nowhere else in the two together: not even in a part of each.
func unmistakable(tokens []token, node *Node) bool {
	for i, t := range tokens {
		if t.variable == none {
			continue
		}
		value := t.variable.of(node)
		if value == "" || strings.Contains(value, "/") {
			return false
		}
		if i+2 < len(tokens) && tokens[i+2].wild() {
			if after := tokens[i+1].literal; strings.Index(value+after, after) != len(value) {
				return false
			}
		}
		if i >= 2 && tokens[i-2].star {
			if before := tokens[i-1].literal; strings.LastIndex(before+value, before) != 0 {
				return false
			}
		}
	}
	return true
}
