package yamlpb

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scalar decodes a value that is not a message.
func (d *decoder) scalar(n *yaml.Node, pos *path, field protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	n, ok := d.enter(n, pos)
	if !ok {
		return protoreflect.Value{}, false
	}
	defer d.leave()
	if n.Kind != yaml.ScalarNode {
		d.problem(n, pos, "needs %s, not %s", kindName(field), describe(n))
		return protoreflect.Value{}, false
	}
	if d.doc.envoy {
		n = asProto3(n, field)
	}
	value, err := parseScalar(n, field)
	if err != nil {
		d.problem(n, pos, "%s", err)
		return protoreflect.Value{}, false
	}
	return value, true
}

func parseScalar(n *yaml.Node, field protoreflect.FieldDescriptor) (value protoreflect.Value, err error) {
	switch kind := field.Kind(); kind {
	case protoreflect.BoolKind:
		if n.Tag != "!!bool" {
			return value, unfit(n, field)
		}
		return protoreflect.ValueOfBool(strings.EqualFold(n.Value, "true")), nil
	case protoreflect.StringKind:
		return parseString(n, field)
	case protoreflect.BytesKind:
		decoded, err := parseBytes(n, field)
		return protoreflect.ValueOfBytes(decoded), err
	case protoreflect.EnumKind:
		number, err := parseEnum(n, field)
		return protoreflect.ValueOfEnum(number), err
	case protoreflect.FloatKind:
		number, err := parseFloat(n, field, 32)
		return protoreflect.ValueOfFloat32(float32(number)), err
	case protoreflect.DoubleKind:
		number, err := parseFloat(n, field, 64)
		return protoreflect.ValueOfFloat64(number), err
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		number, err := parseInteger(n, field, math.MinInt32, math.MaxInt32)
		return protoreflect.ValueOfInt32(int32(number.Int64())), err
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		number, err := parseInteger(n, field, 0, math.MaxUint32)
		return protoreflect.ValueOfUint32(uint32(number.Uint64())), err
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		number, err := parseInteger(n, field, math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfInt64(number.Int64()), err
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		number, err := parseInteger(n, field, 0, math.MaxUint64)
		return protoreflect.ValueOfUint64(number.Uint64()), err
	default:
		return value, fmt.Errorf("fields of kind %s cannot be written in YAML", kind)
	}
}

func unfit(n *yaml.Node, field protoreflect.FieldDescriptor) error {
	return fmt.Errorf("needs %s, not %s", kindName(field), describe(n))
}

func parseString(n *yaml.Node, field protoreflect.FieldDescriptor) (value protoreflect.Value, err error) {
	switch n.Tag {
	case "!!str", "!!timestamp":
	case "!!int", "!!float", "!!bool":
		return value, fmt.Errorf("%w: put it in quotes", unfit(n, field))
	default:
		return value, unfit(n, field)
	}
	if !utf8.ValidString(n.Value) {
		return value, fmt.Errorf("is not valid UTF-8")
	}
	return protoreflect.ValueOfString(n.Value), nil
}

func parseBytes(n *yaml.Node, field protoreflect.FieldDescriptor) ([]byte, error) {
	if n.Tag != "!!str" && n.Tag != "!!binary" {
		return nil, unfit(n, field)
	}
	encoding := base64.StdEncoding
	if strings.ContainsAny(n.Value, "-_") {
		encoding = base64.URLEncoding
	}
	if !strings.HasSuffix(n.Value, "=") {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	decoded, err := encoding.DecodeString(n.Value)
	if err != nil {
		return nil, unfit(n, field)
	}
	return decoded, nil
}

func parseEnum(n *yaml.Node, field protoreflect.FieldDescriptor) (protoreflect.EnumNumber, error) {
	values := field.Enum().Values()
	switch n.Tag {
	case "!!null":
		return 0, nil // only if null is a value
	case "!!str":
		if value := values.ByName(protoreflect.Name(n.Value)); value != nil {
			return value.Number(), nil
		}
	case "!!int":
		number, err := strconv.ParseInt(n.Value, 10, 32)
		if err == nil && values.ByNumber(protoreflect.EnumNumber(number)) != nil {
			return protoreflect.EnumNumber(number), nil
		}
	}
	return 0, fmt.Errorf("%w%s", unfit(n, field), suggestEnum(n.Value, values))
}

// jsonNumber matches a number of JSON. YAML has many other forms, on which readers of YAML
// disagree.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$`)

// maxDigits is the maximum length of a number, in characters.
const maxDigits = 400

func parseFloat(n *yaml.Node, field protoreflect.FieldDescriptor, bits int) (float64, error) {
	switch n.Tag {
	case "!!int", "!!float":
	case "!!str":
		switch n.Value {
		case "NaN", "Infinity", "-Infinity":
			return strconv.ParseFloat(n.Value, bits)
		}
	default:
		return 0, unfit(n, field)
	}
	if len(n.Value) > maxDigits || !jsonNumber.MatchString(n.Value) {
		return 0, fmt.Errorf("%w: write it in decimal digits", unfit(n, field))
	}
	number, err := strconv.ParseFloat(n.Value, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is too large", n.Value)
	}
	return number, nil
}

// plainInteger reads a number in the usual form: a few decimal digits.
func plainInteger(text string) (int64, bool) {
	if len(text) == 0 || len(text) > 18 || text[0] == '+' || text[0] == '0' && len(text) > 1 || strings.HasPrefix(text, "-0") {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil
}

func parseInteger(n *yaml.Node, field protoreflect.FieldDescriptor, low int64, high uint64) (*big.Int, error) {
	zero := new(big.Int)
	switch n.Tag {
	case "!!int", "!!float", "!!str":
	default:
		return zero, unfit(n, field)
	}
	if number, ok := plainInteger(n.Value); ok && number >= low && (number < 0 || uint64(number) <= high) {
		return big.NewInt(number), nil
	}
	if len(n.Value) > 100 || !jsonNumber.MatchString(n.Value) {
		hint := ""
		if n.Tag != "!!str" {
			hint = ": write it in decimal digits"
		}
		return zero, fmt.Errorf("%w%s", unfit(n, field), hint)
	}
	// 1e3 and 1.0 are integers too, as long as the exponent is sane.
	float, _, err := big.ParseFloat(n.Value, 10, 512, big.ToNearestEven)
	if err != nil || !float.IsInt() || float.MantExp(nil) > 128 {
		return zero, unfit(n, field)
	}
	number, _ := float.Int(nil)
	lowest, highest := big.NewInt(low), new(big.Int).SetUint64(high)
	if number.Cmp(lowest) < 0 || number.Cmp(highest) > 0 {
		return zero, fmt.Errorf("%s is out of range: from %d to %d is possible", n.Value, lowest, highest)
	}
	return number, nil
}
