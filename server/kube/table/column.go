package table

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// newColumn returns a column of strings. kubectl does not print the description of a column.
func newColumn(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// newWideColumn returns a column that only -o wide prints.
func newWideColumn(name, description string) metav1.TableColumnDefinition {
	c := newColumn(name, description)
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
func fieldDescription(object interface{ SwaggerDoc() map[string]string }, name string) string {
	return object.SwaggerDoc()[name]
}
