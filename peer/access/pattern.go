package access

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// Node is the identity that a checker or a data plane claims.
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

// Pattern matches names in certificates, and binds the claims of a node.
type Pattern struct {
	text     string
	kind     kind
	segments [][]token // parts between slashes
	binds    bool
	bindsID  bool
}

// token is a part of a segment: a literal, any run of characters, or a variable.
type token struct {
	literal  string
	star     bool
	variable variable
}

// variable is a claim bound by a part of a name.
type variable uint8

const (
	noVariable variable = iota
	nodeID
	region
	zone
)

var variables = map[string]variable{"node.id": nodeID, "region": region, "zone": zone}

func (v variable) value(n *Node) string {
	switch v {
	case nodeID:
		return n.ID
	case region:
		return n.Region
	default:
		return n.Zone
	}
}

func (t token) wild() bool { return t.star || t.variable != noVariable }

// ParsePattern reads a pattern. Its errors are written for the pattern's author.
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
			p.binds = p.binds || t.variable != noVariable
			p.bindsID = p.bindsID || t.variable == nodeID
			if i > 0 && t.wild() && tokens[i-1].wild() && t.variable+tokens[i-1].variable != noVariable {
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
		index := strings.IndexAny(rest, "*{}")
		if index != 0 {
			literal := rest
			if index > 0 {
				literal = rest[:index]
			}
			tokens, rest = append(tokens, token{literal: literal}), rest[len(literal):]
			continue
		}
		if rest[0] == '*' {
			tokens, rest = append(tokens, token{star: true}), strings.TrimLeft(rest, "*")
			continue
		}
		name, after, closed := strings.Cut(rest[1:], "}")
		bound, ok := variables[name]
		if rest[0] == '}' || !closed || !ok {
			return nil, fmt.Errorf("%q: braces hold {node.id}, {region} or {zone}, and nothing else", segment)
		}
		tokens, rest = append(tokens, token{variable: bound}), after
	}
	return tokens, nil
}

// String returns the pattern as written.
func (p *Pattern) String() string { return p.text }

// names are the names in a certificate, by kind.
type names [3][]string

func namesIn(leaf *x509.Certificate) names {
	if leaf == nil {
		return names{}
	}
	uris := make([]string, len(leaf.URIs))
	for i, uri := range leaf.URIs {
		uris[i] = uri.String()
	}
	return names{dnsName: leaf.DNSNames, emailAddress: leaf.EmailAddresses, uri: uris}
}

// Match reports whether the pattern matches a name. The name's values have to equal the node's;
// without a node they may be anything.
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

// matchSegment matches a part of a name without slashes. It tries longer matches only for the
// last star: earlier ones need not grow.
func matchSegment(tokens []token, text string, node *Node) bool {
	if node != nil && !unmistakable(tokens, node) {
		return false
	}
	offset, next := 0, 0 // in the text, in the tokens
	star, tried := -1, 0
	for offset < len(text) || next < len(tokens) {
		if next < len(tokens) {
			literal, minimum, wildcard := tokens[next].expand(node)
			if wildcard {
				star, tried = next, offset+minimum
				offset, next = tried, next+1
				if offset > len(text) {
					return false
				}
				continue
			}
			if strings.HasPrefix(text[offset:], literal) {
				offset, next = offset+len(literal), next+1
				continue
			}
		}
		if star < 0 || tried >= len(text) {
			return false
		}
		tried++
		offset, next = tried, star+1
	}
	return true
}

// expand returns the literal for a token, or the least length of its run of characters.
func (t token) expand(node *Node) (literal string, minimum int, wildcard bool) {
	switch {
	case t.star:
		return "", 0, true
	case t.variable == noVariable:
		return t.literal, 0, false
	case node == nil:
		return "", 1, true
	}
	return t.variable.value(node), 0, false
}

// unmistakable reports whether a name that matches with this node's values matches with no
// others. So values are not empty, and the separator before the next wildcard occurs nowhere
// else in the two together: not even in a part of each.
func unmistakable(tokens []token, node *Node) bool {
	for i, t := range tokens {
		if t.variable == noVariable {
			continue
		}
		value := t.variable.value(node)
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
