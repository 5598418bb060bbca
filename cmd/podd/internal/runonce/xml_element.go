package runonce

import (
	"encoding/xml"
	"strings"
)

// An xmlElement is an XML element with either text or children. writeJUnit uses this type instead of
// xml.Encoder, because xml.Encoder would make the binary 60 KB larger.
type xmlElement struct {
	name       string
	attributes []xmlAttribute
	text       string
	children   []xmlElement
}

// An xmlAttribute is an attribute of an XML element. It is omitted if its value is "".
type xmlAttribute struct{ name, value string }

// format returns the element in XML. Every line starts with indent and ends with a newline.
func (e *xmlElement) format(indent string) string {
	var b strings.Builder
	b.WriteString(indent + "<" + e.name)
	for _, a := range e.attributes {
		if a.value != "" {
			b.WriteString(" " + a.name + `="` + escapeXML(a.value) + `"`)
		}
	}
	b.WriteString(">" + escapeXML(e.text))
	if len(e.children) > 0 {
		b.WriteString("\n")
		for i := range e.children {
			b.WriteString(e.children[i].format(indent + "  "))
		}
		b.WriteString(indent)
	}
	b.WriteString("</" + e.name + ">\n")
	return b.String()
}

// escapeXML escapes text for the content or an attribute of an XML element. It replaces characters that
// XML does not permit with U+FFFD.
func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // no error, because writing to a strings.Builder always succeeds
	return b.String()
}
