package table

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// newColumn returns a column of strings. text is its description, which only clients
// that request the table itself see.
func newColumn(name, text string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: text}
}

// newWideColumn returns a column that only -o wide prints.
func newWideColumn(name, text string) metav1.TableColumnDefinition {
	c := newColumn(name, text)
	c.Priority = 1
	return c
}

func nameColumn() metav1.TableColumnDefinition {
	c := newColumn("Name", fieldDescription(metav1.ObjectMeta{}, "name"))
	c.Format = "name"
	return c
}

func ageColumn() metav1.TableColumnDefinition {
	return newColumn("Age", fieldDescription(metav1.ObjectMeta{}, "creationTimestamp"))
}

// fieldDescription returns the API documentation of a field of an object.
func fieldDescription(of interface{ SwaggerDoc() map[string]string }, name string) string {
	return of.SwaggerDoc()[name]
}
