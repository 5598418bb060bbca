package managed

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"podd/server/kube/openapi"
)

// converter makes trees of fields of objects, by the models that OpenAPI tells
// clients of.
func converter(kinds []openapi.Resource) (managedfields.TypeConverter, error) {
	models := map[string]*spec.Schema{}
	for group, document := range openapi.Describe("", kinds) {
		text, err := json.Marshal(document.Components.Schemas)
		if err == nil {
			err = json.Unmarshal(text, &models)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the models of %s: %w", group, err)
		}
	}
	return managedfields.NewTypeConverter(models, false)
}
