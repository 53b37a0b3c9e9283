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

	"hdsd/health"
	"hdsd/internal/envoyaddr"
)

// ErrNode is that a first message does not tell whose it is.
var ErrNode = errors.New("the node is not usable")

// envoyName is what an Envoy calls itself; any other checker is taken at its
// word.
const envoyName = "envoy"

// secretDiscovery is to get the secrets of a socket by SDS.
const secretDiscovery health.Ability = "SECRET_DISCOVERY"

// signatureAlgorithms is to limit a socket to some: Go's TLS offers no choice.
const signatureAlgorithms health.Ability = "SIGNATURE_ALGORITHMS"

// release is a release of Envoy, patches aside.
type release struct{ major, minor uint32 }

func (r release) before(other release) bool {
	return r.major < other.major || r.major == other.major && r.minor < other.minor
}

// since says from which release of Envoy on an ability is to be relied on,
// whatever the binary claims.
var since = map[health.Ability]release{
	health.GRPC:          {1, 38}, // 1.36 ends, as with what follows
	health.Redis:         {1, 40}, // 1.39 does too, when an endpoint answers rubbish
	secretDiscovery:      {1, 38},
	health.SeveralChecks: {1, 40}, // before, the last check alone decides
}

// extensions are the names in a node that stand for abilities. Other names
// are of no interest, and there are hundreds.
var extensions = map[string]health.Ability{
	"envoy.health_checkers.grpc":   health.GRPC,
	redisName:                      health.Redis,
	"envoy.health_checkers.thrift": health.Thrift,
	tlsName:                        "",
}

// CheckerFromNode tells from a checker's first message who it is and what it
// is able to do. An error wraps ErrNode.
func CheckerFromNode(node *corev3.Node, c *healthv3.Capability) (health.Checker, error) {
	id := node.GetId()
	if wrong := shortText(protoreflect.ValueOfString(id)); id == "" || wrong != "" {
		return health.Checker{}, fmt.Errorf("%w: node.id is missing or %s; start the Envoy with --service-node or node.id in its bootstrap", ErrNode, wrong)
	}
	out := health.Checker{
		ID: id, Locality: envoyaddr.Locality(node.GetLocality()), Version: versionOf(node),
		Abilities: abilitiesOf(node, c),
	}
	out.Weight = weightOf(node)
	for key, value := range node.GetMetadata().GetFields() {
		if s, ok := value.GetKind().(*structpb.Value_StringValue); ok {
			if out.Metadata == nil {
				out.Metadata = map[string]string{}
			}
			out.Metadata[key] = s.StringValue
		}
	}
	return out, nil
}

// weightKey is where a node's metadata says how much it is to check in
// comparison to others.
const weightKey = "hdsd.weight"

// weightOf is the weight that a node says it has, as a number or its text; 0 if
// it says none that is above 0.
func weightOf(node *corev3.Node) float64 {
	value := node.GetMetadata().GetFields()[weightKey]
	weight := value.GetNumberValue()
	if text, err := strconv.ParseFloat(value.GetStringValue(), 64); err == nil {
		weight = text
	}
	if !(weight > 0) || math.IsInf(weight, 1) { // so that NaN is none, too
		return 0
	}
	return weight
}

// IgnoresWeight tells whether a node says a weight that makes no sense.
func IgnoresWeight(node *corev3.Node) bool {
	return node.GetMetadata().GetFields()[weightKey] != nil && weightOf(node) == 0
}

func abilitiesOf(node *corev3.Node, c *healthv3.Capability) health.Abilities {
	abilities := health.Abilities{}
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
		ability, known := extensions[extension.GetName()]
		if extension.GetDisabled() || !known && (isEnvoy || health.Ability(extension.GetName()) != health.SeveralChecks) {
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

// byRelease takes away what a release of Envoy only claims.
func byRelease(abilities health.Abilities, r release) {
	for ability, from := range since {
		if r.before(from) {
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

// releaseOf gives the release that a node names, the zero one where it names
// none that can be read.
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
