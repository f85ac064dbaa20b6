// Command site makes a static site of the pages: navigation, search, and links that work without a
// server. It reads Markdown as GitHub does, and needs no network.
package main

import (
	"flag"
	"fmt"
	"log"
)

// repository has the files that pages link and that are no pages.
const repository = "https://github.com/breakwater-dev/breakwater/blob/main/"

func main() {
	root := flag.String("root", ".", "Root of the repository")
	out := flag.String("out", "dist/site", "Folder of the site; its files are replaced")
	source := flag.String("source", repository, "URL of the files of the repository")
	flag.Parse()
	pages, err := Read(*root, *source)
	if err == nil {
		err = Write(pages, *out)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d pages: %s/index.html\n", len(pages), *out)
}
