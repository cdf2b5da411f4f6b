// What the page knows of the bundle of this name, which is not checked: it is made of others.
export function makeEditor(at: HTMLElement, o: any): any;
