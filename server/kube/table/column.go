package table

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// column returns a column of strings. text is its description, which only clients
// that request the table itself see.
func column(name, text string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: text}
}

// wide returns a column that only -o wide prints.
func wide(name, text string) metav1.TableColumnDefinition {
	c := column(name, text)
	c.Priority = 1
	return c
}

func nameColumn() metav1.TableColumnDefinition {
	c := column("Name", field(metav1.ObjectMeta{}, "name"))
	c.Format = "name"
	return c
}

func ageColumn() metav1.TableColumnDefinition {
	return column("Age", field(metav1.ObjectMeta{}, "creationTimestamp"))
}

// field returns the API documentation of a field of an object.
func field(of interface{ SwaggerDoc() map[string]string }, name string) string {
	return of.SwaggerDoc()[name]
}
