package openapi

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"k8s.io/kube-openapi/pkg/spec3"

	"podd/runtime/runtimetest/golden"
)

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDescribe_Valid checks that the documents can be parsed by the parser that is generated from
// OpenAPI's own schema, which rejects unknown keys.
func TestDescribe_Valid(t *testing.T) {
	for name, d := range Describe("v1.2.3", served()) {
		if _, err := openapiv3.ParseDocument(asJSON(t, d)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDescribe_References checks that every reference refers to a schema of the same document.
func TestDescribe_References(t *testing.T) {
	for name, d := range Describe("v1.2.3", served()) {
		checkReferences(t, name, asJSON(t, d), d.Components.Schemas)
	}
}

func checkReferences(t *testing.T, document string, text []byte, schemas map[string]*Schema) {
	t.Helper()
	parts := strings.Split(string(text), `"$ref":"`)
	if len(parts) < 10 {
		t.Errorf("%s: got %d references, want at least 9", document, len(parts)-1)
	}
	for _, part := range parts[1:] {
		ref, _, _ := strings.Cut(part, `"`)
		name, ok := strings.CutPrefix(ref, schemasPath)
		if !ok || schemas[name] == nil {
			t.Errorf("%s: %s refers to no schema", document, ref)
		}
	}
}

// TestDescribe_Descriptions checks that every kind and every field has a description.
func TestDescribe_Descriptions(t *testing.T) {
	for document, d := range Describe("v1.2.3", served()) {
		for name, s := range d.Components.Schemas {
			if s.Description == "" {
				t.Errorf("%s: schema %s has no description", document, name)
			}
			for field, p := range s.Properties {
				if p.Description == "" {
					t.Errorf("%s: field %s.%s has no description", document, name, field)
				}
			}
		}
	}
}

// TestDescribe_Patch checks that the PATCH operation of a kind determines whether kubectl leaves
// field validation to the server, and whether it sends a strategic merge patch.
func TestDescribe_Patch(t *testing.T) {
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
			t.Errorf("PATCH %s: got kind %v, error %v; want Pod of version v1", path, kind, err)
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
			t.Errorf("PATCH %s does not accept strategic merge patches", path)
		}
	}
	if found != 2 {
		t.Errorf("got %d paths with a PATCH, want 2: the pod and its status", found)
	}
}

func TestDescribe_Models(t *testing.T) {
	schemas := Describe("v1.2.3", served())["api/v1"].Components.Schemas
	for _, name := range []string{
		coreModelPrefix + "Pod", coreModelPrefix + "PodList", coreModelPrefix + "Container", coreModelPrefix + "ContainerPort", coreModelPrefix + "EphemeralContainer",
		coreModelPrefix + "Volume", coreModelPrefix + "Secret", coreModelPrefix + "HTTPGetAction", coreModelPrefix + "PodStatus",
		metaModelPrefix + "ObjectMeta", metaModelPrefix + "Time", metaModelPrefix + "FieldsV1", metaModelPrefix + "Patch",
		"io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
	} {
		compareJSON(t, name, withoutTexts(schemas[name]))
	}
}

func TestDescribe_Paths(t *testing.T) {
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

// compareJSON compares v, encoded as JSON, with a golden file.
func compareJSON(t *testing.T, name string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", name+".json"), string(text)+"\n")
}
