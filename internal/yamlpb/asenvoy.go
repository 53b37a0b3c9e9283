package yamlpb

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Envoy converts YAML to JSON by rules of its own, and reads JSON more leniently than
// the proto3 mapping. testdata/envoy.txt has the results.

// convertForEnvoy changes the nodes of a YAML document into those that Envoy sees. Outside of
// lists, where the fields with all resources are, repeated keys stay, to be refused: otherwise
// half of the resources would be lost.
func convertForEnvoy(doc *document, n *yaml.Node) {
	w := &walker{doc: doc, last: map[string]*yaml.Node{}}
	w.walk(n, false)
}

// keptNames is the maximum size of a mapping whose map of names is reused.
const keptNames = 100

type walker struct {
	doc  *document
	last map[string]*yaml.Node // by name, during the visit of a mapping
}

func (w *walker) walk(n *yaml.Node, listed bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		retype(n)
	case yaml.SequenceNode:
		for _, child := range n.Content {
			w.walk(child, true)
		}
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			w.walk(n.Content[i], listed)
		}
		w.dropIgnored(n, listed)
	}
}

// retype sets the type of a scalar that Envoy sees. Whole numbers are numbers, in octal and hex
// too; large ones stay as digits. Every other number is a string, and the field decides how to
// read it.
func retype(n *yaml.Node) {
	if n.Tag == "!!null" || n.Tag == "!!bool" {
		return
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	number, ok := cInteger(n.Value)
	switch {
	case !ok || quoted && n.Tag != "!!int" || n.Tag == "!!str" && n.Style&yaml.TaggedStyle != 0:
		n.Tag = "!!str"
	case number < math.MinInt32 || number > math.MaxInt32:
		n.Tag, n.Value = "!!str", strconv.FormatInt(number, 10)
	default:
		n.Tag, n.Value = "!!int", strconv.FormatInt(number, 10)
	}
}

// cInteger reads a number as in C: 0x10 is hex, 010 octal.
func cInteger(text string) (int64, bool) {
	if text == "" || text[0] > '9' { // most strings; parsing each would make an error
		return 0, false
	}
	if strings.Contains(text, "_") || strings.ContainsAny(text, "bBoO") && !strings.ContainsAny(text, "xX") || strings.Contains(text, ".") {
		return 0, false // these forms are Go's alone, or no number
	}
	number, err := strconv.ParseInt(text, 0, 64)
	return number, err == nil
}

// dropIgnored removes from a mapping what Envoy ignores: a key tagged !ignore and, within a
// list, all but the last of a repeated key.
func (w *walker) dropIgnored(mapping *yaml.Node, listed bool) {
	if hasPlainKeys(mapping) {
		return
	}
	if len(w.last) > keptNames { // clearing a large map costs as much each time
		w.last = map[string]*yaml.Node{}
	}
	clear(w.last)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!ignore" {
			continue
		}
		if w.last[key.Value] != nil && listed {
			w.doc.warn(key.Line, clip(key.Value), "is given a second time: the last one counts, as in Envoy; remove the others")
		}
		w.last[key.Value] = key
	}
	kept := mapping.Content[:0]
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag != "!ignore" && (!listed || w.last[key.Value] == key) {
			kept = append(kept, key, mapping.Content[i+1])
		}
	}
	mapping.Content = kept
}

// fewNames is the number of names up to which comparing pairs is faster than a map.
const fewNames = 8

// hasPlainKeys reports whether a small mapping has no repeated and no tagged key.
func hasPlainKeys(mapping *yaml.Node) bool {
	if len(mapping.Content) > 2*fewNames {
		return false
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag == "!ignore" {
			return false
		}
		for j := 0; j < i; j += 2 {
			if mapping.Content[j].Value == key.Value {
				return false
			}
		}
	}
	return true
}

// words are YAML's unquoted booleans besides true and false.
var words = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

// word returns the boolean that a scalar stands for in such a word.
func word(n *yaml.Node) (value, ok bool) {
	if n.Tag == "!!str" && n.Style == 0 {
		value, ok = words[n.Value]
	}
	return value, ok
}

// asProto3 returns a scalar as proto3 JSON writes it, if Envoy accepts it as a value of
// the field.
func asProto3(n *yaml.Node, field protoreflect.FieldDescriptor) *yaml.Node {
	scalarNode := func(tag, value string) *yaml.Node {
		changed := *n
		changed.Tag, changed.Value = tag, value
		return &changed
	}
	switch field.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
	case protoreflect.BoolKind:
		if value, ok := looseBool(n); ok {
			return scalarNode("!!bool", strconv.FormatBool(value))
		}
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		if values.ByName(protoreflect.Name(n.Value)) != nil {
			return n
		}
		for i := range values.Len() {
			if name := string(values.Get(i).Name()); n.Tag == "!!str" && strings.EqualFold(name, n.Value) {
				return scalarNode("!!str", name)
			}
		}
		if number, err := parseInteger(scalarNode("!!float", decimal(n.Value)), field, math.MinInt32, math.MaxInt32); err == nil && n.Tag != "!!bool" {
			return scalarNode("!!int", number.String())
		}
	default:
		if n.Tag == "!!str" {
			return scalarNode("!!str", decimal(n.Value))
		}
	}
	return n
}

func looseBool(n *yaml.Node) (value, ok bool) {
	if value, ok = word(n); ok || n.Tag != "!!str" {
		return value, ok
	}
	switch strings.ToLower(n.Value) {
	case "true", "t", "yes", "y", "1":
		return true, true
	case "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

var (
	hexForm     = regexp.MustCompile(`^([+-]?)0[xX]([0-9a-fA-F]{1,16})$`)
	decimalForm = regexp.MustCompile(`^([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]{1,4})?$`)
)

// decimal writes a number as JSON does. It leaves other text, and numbers that are too
// long, as they are.
func decimal(text string) string {
	if len(text) > maxDigits {
		return text
	}
	if hex := hexForm.FindStringSubmatch(text); hex != nil {
		number, _ := new(big.Int).SetString(hex[2], 16)
		return strings.TrimPrefix(hex[1], "+") + number.String()
	}
	parts := decimalForm.FindStringSubmatch(text)
	if parts == nil || !strings.ContainsAny(strings.TrimSuffix(text, parts[4]), "0123456789") {
		return text
	}
	whole, fraction := parts[2], parts[3]
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return strings.TrimPrefix(parts[1], "+") + whole + fraction + parts[4]
}
