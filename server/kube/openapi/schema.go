package openapi

// Schema describes a JSON value. If a Schema has a reference and other attributes, the reference is
// the only member of AllOf.
type Schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Default              any                `json:"default,omitempty"`
	UniqueItems          bool               `json:"uniqueItems,omitempty"`
	AllOf                []*Schema          `json:"allOf,omitempty"`
	OneOf                []*Schema          `json:"oneOf,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`

	Kinds []Kind `json:"x-kubernetes-group-version-kind,omitempty"`
	MergeRules
}

// MergeRules contains the rules for merging two versions of a value.
type MergeRules struct {
	ListType      string   `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys   []string `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType       string   `json:"x-kubernetes-map-type,omitempty"`
	PatchMergeKey string   `json:"x-kubernetes-patch-merge-key,omitempty"`
	PatchStrategy string   `json:"x-kubernetes-patch-strategy,omitempty"`
}

// Kind is a value of the extension x-kubernetes-group-version-kind, with which clients find the
// schema or the operations of a kind.
type Kind struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// schemasPath is the prefix of references to the schemas of the same document.
const schemasPath = "#/components/schemas/"
