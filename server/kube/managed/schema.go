package managed

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"podd/server/kube/openapi"
)

// newConverter returns a converter from objects to trees of fields, based on the
// models that the OpenAPI endpoint publishes.
func newConverter(kinds []openapi.Resource) (managedfields.TypeConverter, error) {
	models := map[string]*spec.Schema{}
	for group, document := range openapi.Describe("", kinds) {
		text, err := json.Marshal(document.Components.Schemas)
		if err == nil {
			err = json.Unmarshal(text, &models)
		}
		if err != nil {
			return nil, fmt.Errorf("converting the OpenAPI models of %s: %w", group, err)
		}
	}
	return managedfields.NewTypeConverter(models, false)
}
