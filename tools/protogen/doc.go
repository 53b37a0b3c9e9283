// Command protogen compiles hdsd's protos and writes the Go code they
// generate and its OpenAPI document: protogen ROOT [OUT], where OUT gets gen/
// instead of ROOT. Envoy's and Google's protos are in no registry as text, so imports
// are resolved from the descriptors that their Go packages carry.
package main
