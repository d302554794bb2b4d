package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// markers reads the +name and +name=value comments of types and fields, and the constants of types, from the sources.
type markers struct {
	packages  map[string]map[string]map[string]string
	constants map[string]map[string][]string
}

func newMarkers() *markers {
	return &markers{packages: map[string]map[string]map[string]string{}, constants: map[string]map[string][]string{}}
}

func (m *markers) ofType(goType reflect.Type) map[string]string {
	if goType.Name() == "" || !strings.Contains(goType.PkgPath(), "/") {
		return nil
	}
	return m.of(goType.PkgPath())[goType.Name()]
}

func (m *markers) ofField(owner reflect.Type, name string) map[string]string {
	return m.of(owner.PkgPath())[owner.Name()+"."+name]
}

// values are those that a type marked as +enum can have.
func (m *markers) values(goType reflect.Type) []string {
	if _, marked := m.ofType(goType)["enum"]; !marked {
		return nil
	}
	values := slices.Clone(m.constants[goType.PkgPath()][goType.Name()])
	slices.Sort(values)
	return slices.Compact(values)
}

func (m *markers) of(pkg string) map[string]map[string]string {
	if found, ok := m.packages[pkg]; ok {
		return found
	}
	found := map[string]map[string]string{}
	m.packages[pkg] = found
	m.constants[pkg] = map[string][]string{}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		fail(err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		fail(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.Base(name), "generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			fail(err)
		}
		collect(file, found)
		constants(file, m.constants[pkg])
	}
	return found
}

func collect(file *ast.File, found map[string]map[string]string) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			typed, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			doc := typed.Doc
			if doc == nil {
				doc = general.Doc
			}
			found[typed.Name.Name] = parse(doc)
			structure, ok := typed.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					found[typed.Name.Name+"."+name.Name] = parse(field.Doc)
				}
				if embedded := embeddedName(field); embedded != "" {
					found[typed.Name.Name+"."+embedded] = parse(field.Doc)
				}
			}
		}
	}
}

// embeddedName is the name of a field that has its type's.
func embeddedName(field *ast.Field) string {
	if len(field.Names) > 0 {
		return ""
	}
	switch named := field.Type.(type) {
	case *ast.Ident:
		return named.Name
	case *ast.SelectorExpr:
		return named.Sel.Name
	}
	return ""
}

// constants notes the texts of all constants by their type.
func constants(file *ast.File, found map[string][]string) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			value := spec.(*ast.ValueSpec)
			named, ok := value.Type.(*ast.Ident)
			if !ok {
				continue
			}
			for _, expression := range value.Values {
				if literal, ok := expression.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						fail(err)
					}
					found[named.Name] = append(found[named.Name], text)
				}
			}
		}
	}
}

func parse(doc *ast.CommentGroup) map[string]string {
	marks := map[string]string{}
	if doc == nil {
		return marks
	}
	for _, comment := range doc.List {
		text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
		name, value, _ := strings.Cut(strings.TrimPrefix(text, "+"), "=")
		if !strings.HasPrefix(text, "+") {
			continue
		}
		if name == "listMapKey" && marks[name] != "" {
			value = marks[name] + "," + value
		}
		marks[name] = value
	}
	return marks
}
