package docs

import (
	"regexp"
	"strings"
	"testing"
)

// A name that is not translated, such as OIDC or RabbitMQ: a word with two capital letters.
var properName = regexp.MustCompile(`[A-Za-z]*[A-Z][A-Za-z]*[A-Z][A-Za-z]*`)

// untranslated returns the code spans, names and targets of links of a section.
func untranslated(section string) map[string]bool {
	all := map[string]bool{}
	for _, m := range codeSpan.FindAllStringSubmatch(section, -1) {
		all["`"+strings.Join(strings.Fields(m[1]), " ")+"`"] = true
	}
	for _, name := range properName.FindAllString(link.ReplaceAllString(section, "]"), -1) {
		all[strings.TrimSuffix(name, "s")] = true // the plural
	}
	for _, m := range link.FindAllStringSubmatch(section, -1) {
		if !strings.HasPrefix(m[1], "README") { // each page links the other one
			all["link "+m[1]] = true
		}
	}
	return all
}

// sections returns the text before the first heading of level 2 and the sections, without diagrams.
func sections(page string) []string {
	return strings.Split(codeFence.ReplaceAllString(page, ""), "\n## ")
}

func TestTheChineseReadmeHasTheCodeNamesAndLinksOfEachSection(t *testing.T) {
	english, chinese := sections(read(t, "README.md")), sections(read(t, "README.zh-CN.md"))
	if len(english) != len(chinese) {
		t.Fatalf("%d sections, want %d", len(chinese), len(english))
	}
	for i, section := range english {
		title, _, _ := strings.Cut(section, "\n")
		translated := untranslated(chinese[i])
		for item := range untranslated(section) {
			if !translated[item] {
				t.Errorf("section %q of README.zh-CN.md has no %s", title, item)
			}
		}
	}
}
