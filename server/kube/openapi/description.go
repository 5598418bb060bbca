package openapi

import "reflect"

// description returns the description of a type or, if name is not empty, of the field with
// that JSON name. It returns "" if there is no description.
func description(t reflect.Type, name string) string {
	if v, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return v.SwaggerDoc()[name]
	}
	if name == "" {
		return descriptions[modelName(t)]
	}
	return ""
}

// descriptions maps the name of a type without SwaggerDoc to its description.
var descriptions = map[string]string{
	metaModelPrefix + "Time":      "A time in seconds in the format of RFC 3339: 2006-01-02T15:04:05Z.",
	metaModelPrefix + "MicroTime": "A time in microseconds in the format of RFC 3339: 2006-01-02T15:04:05.000000Z.",
	metaModelPrefix + "Duration":  "A duration such as 1h10m or 300ms.",
	"io.k8s.apimachinery.pkg.api.resource.Quantity": "A quantity: a decimal number, then at most one suffix. " +
		"Suffixes are powers of ten (n, u, m, k, M, G, T, P, E), powers of two (Ki, Mi, Gi, Ti, Pi, Ei) " +
		"or an exponent (e3, E3): 100m is 0.1, 1k is 1000, 1Ki is 1024.\n\n" +
		"Values are rounded up to billionths. They are returned in the shortest form with the same kind of suffix.",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": "A number or a string, such as a port by its number or its name.",
}
