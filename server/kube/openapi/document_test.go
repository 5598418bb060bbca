package openapi

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/spec3"
)

var update = flag.Bool("update", false, "rewrite testdata")

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Both versions are read by the parsers that were made from the schemas of
// OpenAPI itself, which refuse a key they do not know.
func TestValid(t *testing.T) {
	all := Describe("v1.2.3", served())
	for name, d := range all {
		if _, err := openapiv3.ParseDocument(asJSON(t, d)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(string(asJSON(t, d)), v2Schemas) {
			t.Errorf("%s refers to %s", name, v2Schemas)
		}
	}
	if _, err := openapiv2.ParseDocument(asJSON(t, swagger(all))); err != nil {
		t.Errorf("version 2: %v", err)
	}
}

// What is written as protobuf by hand is what the JSON says.
func TestProto(t *testing.T) {
	s := swagger(Describe("v1.2.3", served()))
	want, err := openapiv2.ParseDocument(asJSON(t, s))
	if err != nil {
		t.Fatal(err)
	}
	got := &openapiv2.Document{}
	if err := proto.Unmarshal(s.proto(), got); err != nil {
		t.Fatal(err)
	}
	normalize(t, want.ProtoReflect())
	normalize(t, got.ProtoReflect())
	for i, d := range want.Definitions.AdditionalProperties {
		if g := got.Definitions.AdditionalProperties[i]; !proto.Equal(d, g) {
			t.Fatalf("definition of the JSON:\n%.2000s\nof the protobuf:\n%.2000s", d, g)
		}
	}
	for i, p := range want.Paths.Path {
		if g := got.Paths.Path[i]; !proto.Equal(p, g) {
			t.Fatalf("path of the JSON:\n%.2000s\nof the protobuf:\n%.2000s", p, g)
		}
	}
	if !proto.Equal(want, got) {
		t.Error("protobuf and JSON differ beside definitions and paths")
	}
}

// Every reference leads to a schema of the same document.
func TestReferences(t *testing.T) {
	all := Describe("v1.2.3", served())
	for name, d := range all {
		checkReferences(t, name, asJSON(t, d), v3Schemas, d.Components.Schemas)
	}
	s := swagger(all)
	checkReferences(t, "version 2", asJSON(t, s), v2Schemas, s.Definitions)
}

func checkReferences(t *testing.T, document string, text []byte, prefix string, schemas map[string]*Schema) {
	t.Helper()
	parts := strings.Split(string(text), `"$ref":"`)
	if len(parts) < 10 {
		t.Errorf("%s: %d references", document, len(parts)-1)
	}
	for _, part := range parts[1:] {
		ref, _, _ := strings.Cut(part, `"`)
		name, ok := strings.CutPrefix(ref, prefix)
		if !ok || schemas[name] == nil {
			t.Errorf("%s: %s leads nowhere", document, ref)
		}
	}
}

// Explain has something to say of every field and every kind.
func TestTexts(t *testing.T) {
	for document, d := range Describe("v1.2.3", served()) {
		for name, s := range d.Components.Schemas {
			if s.Description == "" {
				t.Errorf("%s: %s: no text", document, name)
			}
			for field, p := range s.Properties {
				if p.Description == "" {
					t.Errorf("%s: %s.%s: no text", document, name, field)
				}
			}
		}
	}
}

// kubectl leaves the check of fields to the server, and makes a strategic merge
// patch, by what it finds at the PATCH of a kind.
func TestPatch(t *testing.T) {
	var d spec3.OpenAPI
	if err := json.Unmarshal(asJSON(t, Describe("v1.2.3", served())["api/v1"]), &d); err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, p := range d.Paths.Paths {
		if p.Patch == nil {
			continue
		}
		found++
		var kind map[string]string
		if err := p.Patch.Extensions.GetObject("x-kubernetes-group-version-kind", &kind); err != nil || kind["kind"] != "Pod" || kind["version"] != "v1" {
			t.Errorf("PATCH %s is of %v, %v", path, kind, err)
		}
		names := map[string]bool{}
		for _, q := range p.Patch.Parameters {
			names[q.Name] = q.In == "query"
		}
		for _, want := range []string{"fieldValidation", "dryRun", "fieldManager", "force"} {
			if !names[want] {
				t.Errorf("PATCH %s has no query parameter %s", path, want)
			}
		}
		if p.Patch.RequestBody.Content["application/strategic-merge-patch+json"] == nil {
			t.Errorf("PATCH %s takes no strategic merge patch", path)
		}
	}
	if found != 2 {
		t.Errorf("%d paths with a PATCH, want the pod and its status", found)
	}
}

func TestModels(t *testing.T) {
	schemas := Describe("v1.2.3", served())["api/v1"].Components.Schemas
	for _, name := range []string{
		core + "Pod", core + "PodList", core + "Container", core + "ContainerPort", core + "EphemeralContainer",
		core + "Volume", core + "Secret", core + "HTTPGetAction", core + "PodStatus",
		meta + "ObjectMeta", meta + "Time", meta + "FieldsV1", meta + "Patch",
		"io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
	} {
		golden(t, name, withoutTexts(schemas[name]))
	}
}

func TestPaths(t *testing.T) {
	var lines []string
	for _, d := range Describe("v1.2.3", served()) {
		for path, p := range d.Paths {
			for method, o := range map[string]*Operation{"GET": p.Get, "PUT": p.Put, "POST": p.Post, "DELETE": p.Delete, "PATCH": p.Patch} {
				if o != nil {
					lines = append(lines, operationLine(method, path, o))
				}
			}
		}
	}
	goldenLines(t, "paths", lines)
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join("testdata", name+".json"), string(text)+"\n")
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
	}
}
