// C++: exceptions, COMDAT, virtual functions, static constructors. See sample.c.
// SPDX-License-Identifier: MIT
struct shape {
    virtual int area() const = 0;
    virtual ~shape() {}
};
struct square : shape {
    int side;
    explicit square(int s) : side(s) {}
    int area() const override { return side * side; }
};
template <class T> struct counter {
    static T value;
    static T next() { return ++value; }
};
template <class T> T counter<T>::value = 3;
extern "C" int host_throw(int);
static square global(7);
inline int shared_counter() { static int n = counter<int>::next(); return ++n; }
extern "C" int catch_it(int x)
{
    try {
        square local(x);
        return host_throw(local.area()) + global.area();
    } catch (int e) {
        return e + shared_counter();
    } catch (const shape &s) {
        return s.area();
    }
}
extern "C" int cast(shape *s) { auto *q = dynamic_cast<square *>(s); return q ? q->side : -1; }
extern "C" void throw_it(int x) { if (x) throw x; throw square(x); }
