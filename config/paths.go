package config

import (
	"path/filepath"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/dynamic"
)

// resolvePaths makes relative paths absolute, from the configuration file's folder. The
// paths under checkers are of other machines, and stay.
func resolvePaths(cfg *Config, folder string) {
	resolve := func(path *string) {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
	resolve(&cfg.DataDir)
	if recording := cfg.GetRecording(); recording != nil {
		resolve(&recording.File)
	}
	if planes := cfg.GetDataPlanes(); planes != nil {
		resolve(&planes.EdsDirectory)
	}
	for _, tls := range []*configv1.ServerTls{cfg.GetGrpc().GetTls(), cfg.GetHttp().GetTls(), cfg.GetReplication().GetPeer().GetTls()} {
		if tls != nil {
			resolve(&tls.CertificateChainFile)
			resolve(&tls.PrivateKeyFile)
			resolve(&tls.ClientCaFile)
		}
	}
	for _, receiver := range cfg.GetNotify() {
		if webhook := receiver.GetWebhook(); webhook != nil {
			resolve(&webhook.SecretFile)
		}
		switch authorization := receiver.GetAuthorization().(type) {
		case *configv1.Notify_BasicAuth_:
			resolve(&authorization.BasicAuth.PasswordFile)
		case *configv1.Notify_TokenFile:
			resolve(&authorization.TokenFile)
		}
		resolveTLS(receiver.GetTls(), resolve)
	}
	if etcd := cfg.GetReplication().GetEtcd(); etcd != nil {
		resolve(&etcd.PasswordFile)
		resolveTLS(etcd.GetTls(), resolve)
	}
	if upstream := cfg.GetRelay().GetUpstream().GetApiConfigSource(); upstream != nil {
		resolveIn(upstream.ProtoReflect(), resolve)
	}
	for _, source := range cfg.GetSources() {
		switch specifier := source.GetConfigSource().GetConfigSourceSpecifier().(type) {
		case *corev3.ConfigSource_Path:
			resolve(&specifier.Path)
		case *corev3.ConfigSource_PathConfigSource:
			resolve(&specifier.PathConfigSource.Path)
			if watched := specifier.PathConfigSource.GetWatchedDirectory(); watched != nil {
				resolve(&watched.Path)
			}
		case *corev3.ConfigSource_ApiConfigSource:
			resolveIn(specifier.ApiConfigSource.ProtoReflect(), resolve)
		}
	}
}

// resolveTLS resolves the paths of how to connect to a server.
func resolveTLS(tls *configv1.ClientTls, resolve func(*string)) {
	if tls != nil {
		resolve(&tls.CaFile)
		resolve(&tls.CertificateChainFile)
		resolve(&tls.PrivateKeyFile)
	}
}

// pathFields are the fields of Envoy's messages that name a file or a folder, anywhere
// in an api_config_source.
var pathFields = map[protoreflect.FullName]bool{
	"envoy.config.core.v3.DataSource.filename":   true,
	"envoy.config.core.v3.WatchedDirectory.path": true,
}

// resolveIn resolves the paths in a message, and in packed messages of a known type.
func resolveIn(m protoreflect.Message, resolve func(*string)) {
	if extension, ok := dynamic.Any(m); ok {
		inner, err := extension.UnmarshalNew()
		if err != nil {
			return // reported elsewhere
		}
		before := proto.Clone(inner)
		if resolveIn(inner.ProtoReflect(), resolve); !proto.Equal(before, inner) {
			_ = extension.MarshalFrom(inner) // it was unmarshalled from the same type
			dynamic.Store(m, extension)
		}
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case pathFields[field.FullName()]:
			path := value.String()
			resolve(&path)
			m.Set(field, protoreflect.ValueOfString(path))
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				resolveIn(value.List().Get(i).Message(), resolve)
			}
		default:
			resolveIn(value.Message(), resolve)
		}
		return true
	})
}

// PathOf returns the path of a file source, and the folder whose moves announce
// changes; empty if moves of the path itself do.
func PathOf(source *configv1.Source) (path, watchedDirectory string) {
	switch specifier := source.GetConfigSource().GetConfigSourceSpecifier().(type) {
	case *corev3.ConfigSource_Path:
		return specifier.Path, ""
	case *corev3.ConfigSource_PathConfigSource:
		return specifier.PathConfigSource.GetPath(), specifier.PathConfigSource.GetWatchedDirectory().GetPath()
	default:
		return "", ""
	}
}
