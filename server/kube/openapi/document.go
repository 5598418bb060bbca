package openapi

import "k8s.io/apimachinery/pkg/runtime/schema"

// Document describes the API of one group version in OpenAPI version 3.
type Document struct {
	OpenAPI    string           `json:"openapi"`
	Info       Info             `json:"info"`
	Paths      map[string]*Path `json:"paths"`
	Components Components       `json:"components"`
}

// Info is the title and the version of a document.
type Info struct {
	Title   string `json:"title"`
	Version string `json:"version"`
}

// Components contains the schemas that a Document refers to.
type Components struct {
	Schemas map[string]*Schema `json:"schemas"`
}

// Describe returns the documents of resources by group version, such as "api/v1".
// version is podd's version.
func Describe(version string, resources []Resource) map[string]*Document {
	pathsByVersion := map[schema.GroupVersion]*paths{}
	documents := map[string]*Document{}
	for i := range resources {
		gv := resources[i].Kind.GroupVersion()
		p := pathsByVersion[gv]
		if p == nil {
			p = &paths{models{}, map[string]*Path{}}
			pathsByVersion[gv] = p
			documents[groupVersionPath(gv)] = &Document{"3.0.0", Info{"Kubernetes", version}, p.byPath, Components{p.models}}
		}
		p.add(&resources[i])
	}
	return documents
}
