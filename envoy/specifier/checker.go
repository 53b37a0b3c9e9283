package specifier

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"hdsd/envoy"
	"hdsd/health"
)

// ErrNode reports that a first message does not identify its checker.
var ErrNode = errors.New("the node is not usable")

// envoyName is the user agent of an Envoy. Any other checker's claims are believed.
const envoyName = "envoy"

// secretDiscovery is the ability to get the secrets of a socket by SDS.
const secretDiscovery health.Ability = "SECRET_DISCOVERY"

// signatureAlgorithms is the ability to limit the signature algorithms of a socket.
// Go's TLS lacks it.
const signatureAlgorithms health.Ability = "SIGNATURE_ALGORITHMS"

// release is a release of Envoy, without its patch number.
type release struct{ major, minor uint32 }

func (r release) before(other release) bool {
	return r.major < other.major || r.major == other.major && r.minor < other.minor
}

// introducedIn is the release of Envoy from which an ability works, whatever the binary claims.
var introducedIn = map[health.Ability]release{
	health.GRPC:          {1, 38}, // 1.36 does not live with it
	health.Redis:         {1, 40}, // 1.39 does not live with every answer
	secretDiscovery:      {1, 38},
	health.SeveralChecks: {1, 40}, // before, only the last check decides
	health.FreshCodes:    {1, 39}, // 1.38 goes on reporting the code of the last answer, earlier ones report none
}

// extensions are the extension names in a node that stand for abilities. A node has
// hundreds of others.
var extensions = map[string]health.Ability{
	"envoy.health_checkers.grpc":   health.GRPC,
	redisName:                      health.Redis,
	"envoy.health_checkers.thrift": health.Thrift,
	tlsName:                        "",
}

// CheckerFromNode reads a checker's identity and abilities from its first message. An
// error wraps ErrNode.
func CheckerFromNode(node *corev3.Node, c *healthv3.Capability) (health.Checker, error) {
	id := node.GetId()
	if wrong := shortText(protoreflect.ValueOfString(id)); id == "" || wrong != "" {
		return health.Checker{}, fmt.Errorf("%w: node.id is missing or %s; start the Envoy with --service-node or node.id in its bootstrap", ErrNode, wrong)
	}
	checker := health.Checker{
		ID: id, Locality: envoy.Locality(node.GetLocality()), Version: versionOf(node),
		Abilities: abilitiesOf(node, c),
	}
	checker.Weight = weightOf(node)
	for key, value := range node.GetMetadata().GetFields() {
		if s, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			if checker.Metadata == nil {
				checker.Metadata = map[string]string{}
			}
			checker.Metadata[key] = s.StringValue
		}
	}
	return checker, nil
}

// weightKey is the metadata key of a node's weight in comparison to others.
const weightKey = "hdsd.weight"

// weightOf returns the weight in a node's metadata, a number or its text; 0 if there is
// none above 0.
func weightOf(node *corev3.Node) float64 {
	value := node.GetMetadata().GetFields()[weightKey]
	weight := value.GetNumberValue()
	if text, err := strconv.ParseFloat(value.GetStringValue(), 64); err == nil {
		weight = text
	}
	if !(weight > 0) || math.IsInf(weight, 1) { // NaN is none, too
		return 0
	}
	return weight
}

// IgnoresWeight reports whether a node has an invalid weight.
func IgnoresWeight(node *corev3.Node) bool {
	return node.GetMetadata().GetFields()[weightKey] != nil && weightOf(node) == 0
}

func abilitiesOf(node *corev3.Node, c *healthv3.Capability) health.Abilities {
	abilities := health.Abilities{health.FreshCodes: {}}
	for _, protocol := range c.GetHealthCheckProtocols() {
		switch protocol {
		case healthv3.Capability_HTTP:
			abilities[health.HTTP] = struct{}{}
		case healthv3.Capability_TCP:
			abilities[health.TCP] = struct{}{}
		case healthv3.Capability_REDIS:
			abilities[health.Redis] = struct{}{}
			abilities[redisName] = struct{}{}
		}
	}
	isEnvoy := node.GetUserAgentName() == envoyName
	for _, extension := range node.GetExtensions() {
		ability, ok := extensions[extension.GetName()]
		if extension.GetDisabled() || !ok && (isEnvoy || health.Ability(extension.GetName()) != health.SeveralChecks) {
			continue
		}
		abilities[health.Ability(extension.GetName())] = struct{}{}
		if ability != "" {
			abilities[ability] = struct{}{}
		}
	}
	if isEnvoy {
		abilities[health.SeveralChecks] = struct{}{}
		abilities[secretDiscovery] = struct{}{}
		abilities[signatureAlgorithms] = struct{}{}
		byRelease(abilities, releaseOf(node))
	}
	return abilities
}

// byRelease removes abilities that a release of Envoy claims wrongly.
func byRelease(abilities health.Abilities, r release) {
	for ability, first := range introducedIn {
		if r.before(first) {
			delete(abilities, ability)
		}
	}
}

func versionOf(node *corev3.Node) string {
	version := node.GetUserAgentVersion()
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	if name := node.GetUserAgentName(); name != "" {
		return name + "/" + version
	}
	return version
}

// releaseOf returns the release in a node, or zero if it is not readable.
func releaseOf(node *corev3.Node) release {
	if v := node.GetUserAgentBuildVersion().GetVersion(); v != nil {
		return release{v.GetMajorNumber(), v.GetMinorNumber()}
	}
	parts := strings.SplitN(node.GetUserAgentVersion(), ".", 3)
	if len(parts) < 2 {
		return release{}
	}
	major, err1 := strconv.ParseUint(parts[0], 10, 32)
	minor, err2 := strconv.ParseUint(parts[1], 10, 32)
	if errors.Join(err1, err2) != nil {
		return release{}
	}
	return release{uint32(major), uint32(minor)}
}
