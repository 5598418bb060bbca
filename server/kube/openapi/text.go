package openapi

import "reflect"

// textOf describes a type, or its field of that JSON name; "" is what nobody
// has described.
func textOf(t reflect.Type, name string) string {
	if v, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return v.SwaggerDoc()[name]
	}
	if name == "" {
		return texts[modelName(t)]
	}
	return ""
}

// texts are those of types that have no SwaggerDoc.
var texts = map[string]string{
	meta + "Time":      "A moment with whole seconds, as in RFC 3339: 2006-01-02T15:04:05Z.",
	meta + "MicroTime": "A moment with microseconds, as in RFC 3339: 2006-01-02T15:04:05.000000Z.",
	meta + "Duration":  "A length of time, as in 1h10m or 300ms.",
	"io.k8s.apimachinery.pkg.api.resource.Quantity": "A quantity: a decimal number, then at most one suffix. " +
		"Suffixes are powers of ten (n, u, m, k, M, G, T, P, E), powers of two (Ki, Mi, Gi, Ti, Pi, Ei) " +
		"or an exponent (e3, E3): 100m is 0.1, 1k is 1000, 1Ki is 1024.\n\n" +
		"What is finer than a billionth is rounded up. It is given back in its shortest form with the same kind of suffix.",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": "A number or a string, such as a port by its number or its name.",
}
